"""What each step of a switchover does; every one may run twice."""

from dataclasses import dataclass, field

from replicator.control.records.base import Record
from replicator.errors import RefusedError, ReplicatorError
from replicator.failover.clusters.groups_move import GroupMove, GroupsSeen
from replicator.failover.clusters.lag import (
    find_bypass,
    link_keys,
    measure_backlog,
    recorded_topics,
    wait_for_stable_ends,
)
from replicator.failover.clusters.link_clusters import by_key, by_topic
from replicator.failover.clusters.reverse_flow import (
    fence_lanes,
    place_starts,
    prepare_reverse_flow,
)
from replicator.failover.clusters.source_transactions import end_transactions, name_transactions
from replicator.failover.report.backlog import unknown_words
from replicator.failover.rules.machine import Step, TransitionFacts
from replicator.failover.steps.fence_steps import assert_fence, fence_writers, unfence_writers
from replicator.failover.steps.journal import TakenOverError
from replicator.failover.steps.transition_context import RollBackError, TransitionContext
from replicator.identifiers import TopicPartition

SETTLE_SECONDS = 10.0
"""How long writers may take to notice the fence before it counts as bypassed."""


@dataclass(frozen=True, slots=True)
class Done:
    """The result of a step: one line, evidence, and records that hold from then on."""

    result: str
    evidence: dict[str, object] = field(default_factory=dict)
    records: tuple[Record, ...] = ()


class SwitchoverSteps:
    """Steps of reversing a link while both clusters answer; for one run."""

    def __init__(self, run: TransitionContext) -> None:
        self._run = run
        self._groups: GroupMove | None = None
        self._seen: GroupsSeen | None = None
        self._ends: dict[TopicPartition, int] = {}
        self._bypass = ""
        self._recorded: dict[str, int] | None = None

    def close(self) -> None:
        """Closes the connections."""
        if self._groups is not None:
            self._groups.close()

    # What holds now.

    def facts(self, step: Step, *, waited_seconds: float) -> TransitionFacts:
        """Reads both clusters; what could not be read is not known."""
        request = self._run.request
        patience = request.groups_seconds if step is Step.VERIFY else request.drain_seconds
        unknown = TransitionFacts(waited_seconds=waited_seconds, patience_seconds=patience)
        clusters = self._run.clusters
        fenced = by_key(self._run.journal.evidence(Step.FENCE).get("ends"))
        try:
            bypass, now = find_bypass(clusters, fenced, clock=self._run.clock)
            if bypass is not None:
                self._bypass = bypass.words()
                return TransitionFacts(fence_holds=False, waited_seconds=waited_seconds)
            self._ends = now
            if self._recorded is None:
                self._recorded = recorded_topics(clusters, clusters.old)
            backlog = measure_backlog(clusters, clusters.old, now, recorded=self._recorded)
            lag = backlog.known
            late = waited_seconds >= patience  # named once, where it is the reason
            behind = name_transactions(clusters.old, backlog.open_from) if late and lag else ""
            ready: bool | None = None
            missing = ""
            if step is Step.VERIFY and lag == 0:
                self._seen = self._group_move().round(commit=True)
                ready, missing = self._seen.ready, self._seen.waits_for
        except ReplicatorError as error:
            self._run.notify(step, error.message)
            return unknown
        return TransitionFacts(
            lag_records=lag,
            unknown=unknown_words(backlog.unknown),
            open_transactions=behind,
            fence_holds=True,
            groups_ready=ready,
            groups_wait=missing,
            waited_seconds=waited_seconds,
            patience_seconds=patience,
        )

    def rollback_reason(self, reason: str) -> str:
        """The reason, with the record that was found past the fence."""
        return f"{reason} ({self._bypass})" if self._bypass else reason

    def _group_move(self) -> GroupMove:
        if self._groups is None:
            self._groups = GroupMove(self._run.clusters, clock=self._run.clock)
        return self._groups

    # The steps.

    def prepare(self) -> Done:
        """Applies the reverse flow without letting it run."""
        clusters = self._run.clusters
        wrong = prepare_reverse_flow(clusters, clusters.new, clock=self._run.clock)
        if wrong:
            raise RollBackError(
                f"the reverse flow would not work: {wrong[0]}", subject=clusters.link.name,
                remedy="Correct that first; nothing was changed for writers and readers.",
            )  # fmt: skip
        flow = clusters.flow(clusters.new).id
        return Done(f"{flow} is ready and does not run yet", {"flow": flow})

    def fence(self) -> Done:
        """Fences writers of the old cluster and waits until its logs stop growing."""
        run, clusters = self._run, self._run.clusters
        if run.fencing is None:
            raise RollBackError(
                "the link declares no way to fence writers", subject=clusters.link.name
            )
        try:
            outputs = [fence_writers(run, clusters.old, run.fencing)]
            if run.fencing.fence_passive:
                outputs.append(fence_writers(run, clusters.new, run.fencing))
        except TakenOverError:
            raise
        except RefusedError as error:
            raise RollBackError(
                error.message, subject=error.subject, remedy=error.remedy
            ) from error
        ends = wait_for_stable_ends(
            clusters,
            clusters.old,
            clock=run.clock,
            patience_seconds=min(SETTLE_SECONDS, run.request.drain_seconds),
        )
        if ends is None:
            raise RollBackError(
                "writers still write to the old cluster: the fence does not hold",
                subject=f"cluster:{clusters.old.alias}",
                remedy="Stop the writers that the fence does not reach, then try again.",
            )
        aborted: tuple[str, ...] = ()
        if run.request.open_transactions == "fence":
            aborted = end_transactions(
                clusters, clusters.old, ends, "fence", clock=run.clock, patience_seconds=0.0
            )
        hooks = run.hooks(Step.FENCE, "after-fence")
        return Done(
            f"{run.fencing.method}: nothing is written to {clusters.old.alias}",
            {
                "ends": by_topic(ends),
                "after-fence": hooks,
                "said": [one for one in outputs if one],
                "aborted": list(aborted),
            },
        )

    def drain(self) -> Done:
        """Everything that was written before the fence is on the new cluster."""
        return Done("nothing is left to copy", {"ends": by_topic(self._ends)})

    def verify(self) -> Done:
        """Group positions are exact on the new cluster."""
        seen = self._seen
        if seen is None:
            return Done("no groups were checked")
        moved = len(seen.report.groups)
        text = f"{moved} groups carried over"
        if seen.refused:
            text += f", {len(seen.refused)} refused"
        if seen.unread:
            names = ", ".join(sorted(seen.unread)[:3])
            text += f"; still reading on the old cluster, so they will re-read what they commit from now on: {names}"
        if seen.unsettled:
            text += f"; {seen.waits_for}"
        return Done(
            text,
            {
                "groups": seen.evidence(),
                "refused": [{"group": g, "reason": r} for g, r in seen.refused],
            },
        )

    def promote(self) -> Done:
        """Fences the old epoch's lanes: none of them can commit any more."""
        run, clusters = self._run, self._run.clusters
        if run.fencing is not None:
            assert_fence(run, clusters.old, run.fencing)
        lanes = fence_lanes(clusters, clusters.old, clock=run.clock)
        fenced = by_key(run.journal.evidence(Step.FENCE).get("ends"))
        bypass, now = find_bypass(clusters, fenced, clock=run.clock)
        if bypass is not None:
            raise RollBackError(bypass.words(), subject=f"cluster:{clusters.old.alias}")
        left = measure_backlog(clusters, clusters.old, now)
        if left.known != 0:
            missing = unknown_words(left.unknown) or f"{left.total} records were not copied"
            raise RollBackError(missing, subject=clusters.link.name)
        starts = clusters.offsets(clusters.new, link_keys(clusters, clusters.new))
        return Done(
            f"{clusters.new.alias} is active in epoch {run.role().epoch}, {lanes} lanes fenced",
            {"newEnds": by_topic(starts), "oldEnds": by_topic(now), "lanes": lanes},
        )

    def turn(self) -> Done:
        """Sets the reverse flow to where the new cluster's own records begin."""
        run, clusters = self._run, self._run.clusters
        record = run.role_record(clusters.new, "mirroring", "")
        begun = run.role().rank == record.role().rank
        starts = by_key(run.journal.evidence(Step.PROMOTE).get("newEnds"))
        if not begun:  # a flow that runs keeps its own checkpoints
            place_starts(
                clusters, clusters.new, starts, clock=run.clock, check=run.journal.check_ours
            )
        flow = clusters.flow(clusters.new).id
        return Done(f"{flow} begins", {"starts": by_topic(starts)})

    def release(self) -> Done:
        """Removes the fence of the new cluster and runs hooks."""
        run, clusters = self._run, self._run.clusters
        unfence_writers(run, clusters.new)
        opened_ms = run.journal.now_ms()
        hooks = run.hooks(Step.RELEASE, "after-promote")
        return Done(
            f"{clusters.new.alias} takes writers", {"openedAt": opened_ms, "after-promote": hooks}
        )
