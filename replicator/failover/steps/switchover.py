"""What each step of a switchover does; every one may be done twice."""

from dataclasses import dataclass, field

from replicator.control.store.base import Record
from replicator.errors import RefusedError, ReplicatorError
from replicator.failover.clusters.groups_move import GroupMove, GroupsSeen
from replicator.failover.clusters.lag import ends_at_rest, link_keys, look_past_fence, measure_lag
from replicator.failover.clusters.link_clusters import by_key, by_topic
from replicator.failover.clusters.reverse_flow import (
    fence_lanes,
    place_starts,
    prepare_reverse_flow,
)
from replicator.failover.rules.machine import Step, TransitionFacts
from replicator.failover.steps.fence_steps import fence_writers, unfence_writers
from replicator.failover.steps.journal import TakenOverError
from replicator.failover.steps.transition_context import RollBackError, TransitionContext
from replicator.identifiers import TopicPartition

SETTLE_SECONDS = 10.0
"""How long writers may take to notice the fence before it counts as bypassed."""


@dataclass(frozen=True, slots=True)
class Done:
    """What a step came to: one line, evidence, and records that hold from then on."""

    result: str
    evidence: dict[str, object] = field(default_factory=dict)
    records: tuple[Record, ...] = ()


class SwitchoverSteps:
    """Steps of turning a link while both sides answer; for one run."""

    def __init__(self, run: TransitionContext) -> None:
        self._run = run
        self._groups: GroupMove | None = None
        self._seen: GroupsSeen | None = None
        self._ends: dict[TopicPartition, int] = {}
        self._bypass = ""

    def close(self) -> None:
        """Gives connections back."""
        if self._groups is not None:
            self._groups.close()

    # What holds now.

    def facts(self, step: Step, *, waited_seconds: float) -> TransitionFacts:
        """Looks at both sides; what could not be read is not known."""
        request = self._run.request
        patience = request.groups_seconds if step is Step.VERIFY else request.drain_seconds
        unknown = TransitionFacts(waited_seconds=waited_seconds, patience_seconds=patience)
        sides = self._run.sides
        fenced = by_key(self._run.journal.evidence(Step.FENCE).get("ends"))
        try:
            bypass, now = look_past_fence(sides, fenced, clock=self._run.clock)
            if bypass is not None:
                self._bypass = bypass.words()
                return TransitionFacts(fence_holds=False, waited_seconds=waited_seconds)
            self._ends = now
            lag = sum(measure_lag(sides, sides.old, now).values())
            ready: bool | None = None
            if step is Step.VERIFY and lag == 0:
                self._seen = self._group_move().round(commit=True)
                ready = self._seen.ready
        except ReplicatorError as error:
            self._run.say(step, error.message)
            return unknown
        return TransitionFacts(
            lag_records=lag,
            fence_holds=True,
            groups_ready=ready,
            waited_seconds=waited_seconds,
            patience_seconds=patience,
        )

    def rollback_reason(self, reason: str) -> str:
        """The reason with what was seen."""
        return f"{reason} ({self._bypass})" if self._bypass else reason

    def _group_move(self) -> GroupMove:
        if self._groups is None:
            self._groups = GroupMove(self._run.sides, clock=self._run.clock)
        return self._groups

    # The steps.

    def prepare(self) -> Done:
        """The way back is applied and rests."""
        sides = self._run.sides
        wrong = prepare_reverse_flow(sides, sides.new, clock=self._run.clock)
        if wrong:
            raise RollBackError(
                f"the way back would not work: {wrong[0]}", subject=sides.link.name,
                remedy="Mend that first; nothing was changed for writers and readers.",
            )  # fmt: skip
        flow = sides.flow(sides.new).id
        return Done(f"{flow} is ready and rests", {"flow": flow})

    def fence(self) -> Done:
        """Writers are kept off the old side, and it is looked at whether they are."""
        run, sides = self._run, self._run.sides
        if run.fencing is None:
            raise RollBackError("no way to keep writers off", subject=sides.link.name)
        try:
            said = [fence_writers(run, sides.old, run.fencing)]
            if run.fencing.fence_passive:
                said.append(fence_writers(run, sides.new, run.fencing))
        except TakenOverError:
            raise
        except RefusedError as error:
            raise RollBackError(
                error.message, subject=error.subject, remedy=error.remedy
            ) from error
        ends = ends_at_rest(
            sides,
            sides.old,
            clock=run.clock,
            patience_seconds=min(SETTLE_SECONDS, run.request.drain_seconds),
        )
        if ends is None:
            raise RollBackError(
                "writers still write on the old side, the fence does not hold",
                subject=f"cluster:{sides.old.alias}",
                remedy="Stop the writers that the fence does not reach, then try again.",
            )
        hooks = run.hooks(Step.FENCE, "after-fence")
        return Done(
            f"{run.fencing.method}: nothing is written on {sides.old.alias}",
            {"ends": by_topic(ends), "after-fence": hooks, "said": [one for one in said if one]},
        )

    def drain(self) -> Done:
        """Everything that was written before the fence is on the new side."""
        return Done("nothing is left to copy", {"ends": by_topic(self._ends)})

    def verify(self) -> Done:
        """Group positions are exact on the new side."""
        seen = self._seen
        if seen is None:
            return Done("no groups were looked at")
        moved = len(seen.report.groups)
        text = f"{moved} groups carried over"
        if seen.refused:
            text += f", {len(seen.refused)} refused"
        if seen.unread:
            names = ", ".join(sorted(seen.unread)[:3])
            text += (
                f"; still reading on the old side, re-reads what it commits from now on: {names}"
            )
        return Done(
            text,
            {
                "groups": seen.evidence(),
                "refused": [{"group": g, "reason": r} for g, r in seen.refused],
            },
        )

    def promote(self) -> Done:
        """The new epoch stands; nobody of the old one can write any more."""
        run, sides = self._run, self._run.sides
        lanes = fence_lanes(sides, sides.old, clock=run.clock)
        fenced = by_key(run.journal.evidence(Step.FENCE).get("ends"))
        bypass, now = look_past_fence(sides, fenced, clock=run.clock)
        if bypass is not None:
            raise RollBackError(bypass.words(), subject=f"cluster:{sides.old.alias}")
        left = sum(measure_lag(sides, sides.old, now).values())
        if left:
            raise RollBackError(f"{left} records were not copied", subject=sides.link.name)
        starts = sides.offsets(sides.new, link_keys(sides, sides.new))
        return Done(
            f"{sides.new.alias} is active in epoch {run.role().epoch}, {lanes} lanes fenced",
            {"newEnds": by_topic(starts), "oldEnds": by_topic(now), "lanes": lanes},
        )

    def turn(self) -> Done:
        """The flow goes the other way, from where the new side's own records begin."""
        run, sides = self._run, self._run.sides
        record = run.role_record(sides.new, "mirroring", "")
        begun = run.role().rank == record.role().rank
        starts = by_key(run.journal.evidence(Step.PROMOTE).get("newEnds"))
        if not begun:  # once it runs, its checkpoints are its own
            place_starts(sides, sides.new, starts, clock=run.clock, check=run.journal.check_ours)
        flow = sides.flow(sides.new).id
        return Done(f"{flow} begins", {"starts": by_topic(starts)})

    def release(self) -> Done:
        """Writers are let on the new side."""
        run, sides = self._run, self._run.sides
        unfence_writers(run, sides.new)
        opened_ms = run.journal.now_ms()
        hooks = run.hooks(Step.RELEASE, "after-promote")
        return Done(
            f"{sides.new.alias} takes writers", {"openedAt": opened_ms, "after-promote": hooks}
        )
