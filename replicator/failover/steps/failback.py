"""The first half of a failback: the failed cluster returns as the passive one.

In these steps ``clusters.old`` is the cluster that is active now, ``clusters.new`` the one that returns.
"""

from collections.abc import Generator
from contextlib import closing
from pathlib import Path

from replicator.control.records.role_records import SalvageRecord, StepRecord, TransitionRecord
from replicator.control.store.state import ControlState
from replicator.errors import RefusedError, ReplicatorError
from replicator.failover.clusters.lag import (
    link_keys,
    log_ends,
    measure_backlog,
    stored_checkpoints,
    wait_for_stable_ends,
)
from replicator.failover.clusters.link_clusters import by_key, by_topic
from replicator.failover.clusters.returned import SHORT_REMEDY, lost_by_returning
from replicator.failover.clusters.reverse_flow import place_starts, prepare_reverse_flow
from replicator.failover.clusters.source_transactions import end_transactions
from replicator.failover.clusters.tail import TailRecord, export_tail, read_tail
from replicator.failover.clusters.tail_writer import TailWriter
from replicator.failover.report.backlog import lag_of, unknown_words
from replicator.failover.report.report import Loss, TopicLoss
from replicator.failover.rules.before import (
    REST,
    Promotion,
    ReverseStart,
    behind_injected,
    reverse_start,
)
from replicator.failover.rules.machine import Step, TransitionFacts
from replicator.failover.steps.fence_steps import fence_writers
from replicator.failover.steps.switchover import SETTLE_SECONDS, Done
from replicator.failover.steps.transition_context import TransitionContext
from replicator.identifiers import TopicPartition
from replicator.topology.plan import ClusterPlan

CATCH_UP_SECONDS = 3600.0


class FailbackSteps:
    """Steps until the reverse flow mirrors; for one run."""

    def __init__(self, run: TransitionContext) -> None:
        self._run = run

    def facts(self, step: Step, *, waited_seconds: float) -> TransitionFacts:
        """How far the reverse flow is behind the log ends at its start."""
        patience = CATCH_UP_SECONDS
        clusters = self._run.clusters
        lag: int | None = None
        unknown = ""
        if step is Step.CATCH_UP:
            goal = by_key(self._run.journal.evidence(Step.REALIGN).get("goal"))
            try:
                backlog = measure_backlog(clusters, clusters.old, goal)
                lag, unknown = backlog.known, unknown_words(backlog.unknown)
            except ReplicatorError as error:
                self._run.notify(step, error.message)
        return TransitionFacts(
            lag_records=lag,
            unknown=unknown,
            waited_seconds=waited_seconds,
            patience_seconds=patience,
        )

    def rejoin(self) -> Done:
        """Writes the role to the returning cluster and fences its writers."""
        run, clusters = self._run, self._run.clusters
        method = "no method declared"
        if run.fencing is not None:
            fence_writers(run, clusters.new, run.fencing)
            method = run.fencing.method
        ends = wait_for_stable_ends(
            clusters, clusters.new, clock=run.clock, patience_seconds=SETTLE_SECONDS
        )
        if ends is None:
            raise RefusedError(
                f"SPLIT_BRAIN: writers still write on {clusters.new.alias}, and {clusters.old.alias} is "
                f"active; {clusters.new.alias} ends at {by_topic(log_ends(clusters, clusters.new))}",
                subject=clusters.link.name,
                remedy="Stop them or move them to the active cluster, then resume.",
            )
        short = lost_by_returning(clusters)
        if short:
            raise RefusedError(
                f"RETURNED_SHORT: {clusters.new.alias} lost records that it had given: "
                f"{unknown_words(short)}",
                subject=clusters.link.name, remedy=SHORT_REMEDY,
            )  # fmt: skip
        return Done(
            f"{clusters.new.alias} is passive, writers fenced: {method}", {"ends": by_topic(ends)}
        )

    def salvage(self) -> Done:
        """Lists and exports the tail that never reached the active cluster."""
        run, clusters = self._run, self._run.clusters
        ranges = self._ranges()
        upto = {key: high for key, (low, high) in ranges.items() if high > low}
        aborted = end_transactions(
            clusters, clusters.new, upto, run.request.open_transactions, clock=run.clock,
            patience_seconds=run.request.drain_seconds,
        )  # fmt: skip
        folder = run.request.export or Path.cwd()
        header = run.journal.header
        file = folder / f"{header.link}-{header.id}-tail.jsonl"
        with closing(self._tail(ranges)) as records:
            export = export_tail(records, file, to_parquet=run.request.to_parquet)
        total = sum(export.counts.values())
        span = max(0.0, (export.newest_ms - export.oldest_ms) / 1000) if total else 0.0
        run.loss = Loss(
            tuple(
                TopicLoss(topic, sum(n for (name, _), n in export.counts.items() if name == topic),
                          span)
                for topic in sorted({topic for topic, _ in export.counts})
            ),
            exact=True,
        )  # fmt: skip
        return Done(
            f"{total} records had not reached {clusters.old.alias}; exported to {file}",
            {
                "ranges": [
                    {"topic": t, "partition": p, "from": low, "to": high,
                     "records": export.counts.get((t, p), 0)}
                    for (t, p), (low, high) in sorted(ranges.items()) if high > low
                ],
                "records": total,
                "file": str(file),
                "parquet": str(export.parquet) if export.parquet else None,
                "sha256": export.digest,
                "loss": run.loss.as_json(),
                "aborted": list(aborted),
            },
        )  # fmt: skip

    def _ranges(self) -> dict[TopicPartition, tuple[int, int]]:
        """From the last copied record to where the returning cluster ended, by partition."""
        clusters = self._run.clusters
        ends = by_key(self._run.journal.evidence(Step.REJOIN).get("ends"))
        starts = clusters.offsets(clusters.new, ends, "earliest", isolation="read_uncommitted")
        lag = lag_of(ends, starts, stored_checkpoints(clusters, clusters.new))
        return {key: (end - lag[key], end) for key, end in ends.items()}

    def _tail(self, ranges: dict[TopicPartition, tuple[int, int]]) -> Generator[TailRecord]:
        """What the returning cluster has in these ranges, and the active one never sent it."""
        clusters = self._run.clusters
        return read_tail(
            clusters.new,
            ranges,
            seen_by=clusters.old.alias,
            arrivals=clusters.plan.arrivals(clusters.new.alias),
            topology=clusters.topology,
            clock=self._run.clock,
        )

    def inject(self) -> Done:
        """Injects the tail into the active cluster, or keeps it in the export only."""
        run, clusters = self._run, self._run.clusters
        listed = run.journal.evidence(Step.SALVAGE)
        total = listed.get("records", 0)
        options = run.journal.header.options
        single = options.get("tailTopics") or {}
        if options.get("tail") != "inject" and "inject" not in single.values():
            return Done(f"{total} records are kept in the export", {"injected": 0})
        # Opened first: progress is read once no other injector can write any more.
        injector = TailWriter(
            clusters.old, topology=clusters.topology, link=clusters.link.name,
            transition=run.journal.header.id, source=clusters.new.alias,
            provenance=clusters.flow(clusters.new).policy.single_provenance,
        )  # fmt: skip
        try:
            run.journal.check_ours()
            done = self._injected()
            counted = {key: one.records for key, one in done.items()}
            ranges = {
                key: (max(low, done[key].next_offset if key in done else low), high)
                for key, (low, high) in self._ranges().items()
            }
            with closing(self._tail(ranges)) as records:
                injector.write(
                    (
                        one
                        for one in records
                        if one.injectable and single.get(one.topic, options.get("tail")) == "inject"
                    ),
                    counted=counted,
                )
        finally:
            injector.close()
        injected = sum(counted.values())
        kept = int(str(total)) - injected
        rest = f"; {kept} stay in the export" if kept else ""
        return Done(
            f"{injected} records were injected into {clusters.old.alias}, behind its own records{rest}",
            {"injected": injected, "keptAside": kept},
        )

    def _injected(self) -> dict[TopicPartition, SalvageRecord]:
        """How far this tail was injected, by partition.

        An earlier failback may have injected records before it was rolled back, or before the link was failed over
        twice. They stay, and must not be injected twice.
        """
        clusters = self._run.clusters
        self._run.journal.refresh()
        found: dict[TopicPartition, SalvageRecord] = {}
        for one in self._salvaged(clusters.new, self._start(clusters.new).since):
            key = (one.topic, one.partition)
            if key not in found or one.next_offset > found[key].next_offset:
                found[key] = one
        return found

    def realign(self) -> Done:
        """Sets the reverse flow to where the active cluster's own records begin."""
        run, clusters = self._run, self._run.clusters
        wrong = prepare_reverse_flow(clusters, clusters.old, clock=run.clock)
        if wrong:
            raise RefusedError(
                f"the reverse flow cannot work: {wrong[0]}", subject=clusters.link.name,
                remedy="Correct that, then resume.",
            )  # fmt: skip
        starts = self._starts()
        record = run.role_record(clusters.old, "realigning", "")
        if run.role().rank != record.role().rank:  # a flow that runs keeps its own checkpoints
            place_starts(
                clusters, clusters.old, starts, clock=run.clock, check=run.journal.check_ours
            )
        goal = clusters.offsets(clusters.old, link_keys(clusters, clusters.old))
        return Done(
            f"{clusters.flow(clusters.old).id} begins",
            {"starts": by_topic(starts), "goal": by_topic(goal)},
        )

    def _starts(self) -> dict[TopicPartition, int]:
        """Where the reverse flow begins, by the journals of both clusters; without those where it stands."""
        clusters = self._run.clusters
        start = self._start(clusters.old)
        standing = {
            place: checkpoint.offset
            for place, checkpoint in stored_checkpoints(clusters, clusters.old).items()
        }
        return behind_injected(start.ends, standing, self._salvaged(clusters.old, start.since))

    def _states(self) -> tuple[ControlState, ControlState]:
        """What both clusters have on record; both answer during a failback."""
        run = self._run
        return run.journal.state, run.clusters.control(run.clusters.new)

    def _start(self, cluster: ClusterPlan) -> ReverseStart:
        """Where the flow out of a cluster has to begin, by the promotions that are on record."""
        mine = self._run.journal.header
        found: dict[str, Promotion] = {}
        for state in self._states():
            for one in state.transitions(mine.link):
                if one.id == mine.id:
                    continue
                for step in state.steps(one.link, one.id):
                    if step.step == Step.PROMOTE:  # if only begun, the flow before it had ended
                        found[one.id] = _promotion(one, step)
        return reverse_start(found.values(), str(cluster.alias))

    def _salvaged(self, cluster: ClusterPlan, since: int) -> list[SalvageRecord]:
        """How far tails of a cluster were injected into the other one, from that epoch on."""
        return [
            record
            for state in self._states()
            for one in state.transitions(self._run.journal.header.link)
            if (one.kind, one.target) == ("failback", cluster.alias) and one.base_epoch >= since
            for record in state.salvaged(one.link, one.id)
        ]

    def catch_up(self) -> Done:
        """The returning cluster has what the active one had."""
        clusters = self._run.clusters
        return Done(f"{clusters.new.alias} has caught up and mirrors {clusters.old.alias}")


def _promotion(one: TransitionRecord, step: StepRecord) -> Promotion:
    # A failback promotes once the reverse flow has mirrored; records of before this was noted have no option.
    rest = one.options.get(REST) if one.kind != "failback" else None
    return Promotion(
        one.target, one.base_epoch, rest or "mirroring", stays=bool(one.options.get("stays")),
        ends=by_key(step.evidence.get("newEnds")),
    )  # fmt: skip
