"""What the first half of a failback does: the lost side comes back as the passive one.

In these steps ``sides.old`` is the side that is active now, ``sides.new`` the one that comes back.
"""

from pathlib import Path

from replicator.control.store.role_records import SalvageRecord
from replicator.errors import RefusedError, ReplicatorError
from replicator.failover.clusters.lag import (
    ends_at_rest,
    lag_of,
    link_keys,
    log_ends,
    measure_lag,
    stored_checkpoints,
)
from replicator.failover.clusters.link_clusters import by_key, by_topic
from replicator.failover.clusters.reverse_flow import place_starts, prepare_reverse_flow
from replicator.failover.clusters.tail import export_tail, read_tail
from replicator.failover.clusters.tail_writer import TailWriter
from replicator.failover.rules.machine import Step, TransitionFacts
from replicator.failover.rules.report import Loss, TopicLoss
from replicator.failover.steps.fence_steps import fence_writers
from replicator.failover.steps.switchover import SETTLE_SECONDS, Done
from replicator.failover.steps.transition_context import TransitionContext
from replicator.identifiers import TopicPartition

CATCH_UP_SECONDS = 3600.0


class FailbackSteps:
    """Steps until the reversed flow mirrors; for one run."""

    def __init__(self, run: TransitionContext) -> None:
        self._run = run

    def facts(self, step: Step, *, waited_seconds: float) -> TransitionFacts:
        """How far the reversed flow is behind the end it had when it began."""
        patience = CATCH_UP_SECONDS
        sides = self._run.sides
        lag: int | None = None
        if step is Step.CATCH_UP:
            goal = by_key(self._run.journal.evidence(Step.REALIGN).get("goal"))
            try:
                lag = sum(measure_lag(sides, sides.old, goal).values()) if goal else 0
            except ReplicatorError as error:
                self._run.say(step, error.message)
        return TransitionFacts(
            lag_records=lag, waited_seconds=waited_seconds, patience_seconds=patience
        )

    def rejoin(self) -> Done:
        """The returning side is told who is active; writers that still use it are kept off."""
        run, sides = self._run, self._run.sides
        said = "no method declared"
        if run.fencing is not None:
            fence_writers(run, sides.new, run.fencing)
            said = run.fencing.method
        ends = ends_at_rest(sides, sides.new, clock=run.clock, patience_seconds=SETTLE_SECONDS)
        if ends is None:
            raise RefusedError(
                f"SPLIT_BRAIN: writers still write on {sides.new.alias}, and {sides.old.alias} is "
                f"active; {sides.new.alias} ends at {by_topic(log_ends(sides, sides.new))}",
                subject=sides.link.name,
                remedy="Stop them or point them at the active side, then resume.",
            )
        return Done(
            f"{sides.new.alias} is passive, writers kept off: {said}", {"ends": by_topic(ends)}
        )

    def salvage(self) -> Done:
        """The tail that never reached the active side is listed and exported."""
        run, sides = self._run, self._run.sides
        ranges = self._ranges()
        folder = run.request.export or Path.cwd()
        header = run.journal.header
        file = folder / f"{header.link}-{header.id}-tail.jsonl"
        records = read_tail(
            sides.new,
            ranges,
            seen_by=sides.old.alias,
            arrivals=sides.plan.arrivals(sides.new.alias),
            clock=run.clock,
        )
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
            f"{total} records had not reached {sides.old.alias}; exported to {file}",
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
            },
        )  # fmt: skip

    def _ranges(self) -> dict[TopicPartition, tuple[int, int]]:
        """From the last copied record to where the returning side ended, by partition."""
        sides = self._run.sides
        ends = by_key(self._run.journal.evidence(Step.REJOIN).get("ends"))
        starts = sides.offsets(sides.new, ends, "earliest", isolation="read_uncommitted")
        lag = lag_of(ends, starts, stored_checkpoints(sides, sides.new))
        return {key: (end - lag[key], end) for key, end in ends.items()}

    def inject(self) -> Done:
        """The tail is put on the active side, or kept aside, as asked."""
        run, sides = self._run, self._run.sides
        listed = run.journal.evidence(Step.SALVAGE)
        total = listed.get("records", 0)
        if run.journal.header.options.get("tail") != "inject":
            return Done(f"{total} records are kept aside", {"injected": 0})
        # Opened first: how far it got is read when nobody else can put anything there any more.
        injector = TailWriter(
            sides.old, topology=sides.topology, link=sides.link.name,
            transition=run.journal.header.id, source=sides.new.alias,
            provenance=sides.flow(sides.new).policy.provenance,
        )  # fmt: skip
        try:
            run.journal.check_ours()
            done = self._injected()
            counted = {key: one.records for key, one in done.items()}
            ranges = {
                key: (max(low, done[key].next_offset if key in done else low), high)
                for key, (low, high) in self._ranges().items()
            }
            records = read_tail(
                sides.new,
                ranges,
                seen_by=sides.old.alias,
                arrivals=sides.plan.arrivals(sides.new.alias),
                clock=run.clock,
            )
            injector.write((one for one in records if one.injectable), counted=counted)
        finally:
            injector.close()
        injected = sum(counted.values())
        kept = int(str(total)) - injected
        aside = f"; {kept} that cannot be written as they are stay in the export" if kept else ""
        return Done(
            f"{injected} records were put on {sides.old.alias}, behind what it had{aside}",
            {"injected": injected, "keptAside": kept},
        )

    def _injected(self) -> dict[TopicPartition, SalvageRecord]:
        """How far this tail was put on the active side, by partition.

        An earlier failback may have put some there before it was taken back: that cannot be taken
        back with it, and must not be done twice. One of the same epoch had the same tail.
        """
        journal = self._run.journal
        link, header, state = self._run.sides.link.name, journal.header, journal.refresh()
        found: dict[TopicPartition, SalvageRecord] = {}
        for attempt in state.transitions(link):
            if (attempt.kind, attempt.target, attempt.base_epoch) != (
                header.kind, header.target, header.base_epoch,
            ):  # fmt: skip
                continue
            for one in state.salvaged(link, attempt.id):
                key = (one.topic, one.partition)
                if key not in found or one.next_offset > found[key].next_offset:
                    found[key] = one
        return found

    def realign(self) -> Done:
        """The reversed flow begins where the active side's own records begin."""
        run, sides = self._run, self._run.sides
        wrong = prepare_reverse_flow(sides, sides.old, clock=run.clock)
        if wrong:
            raise RefusedError(
                f"the reversed flow cannot work: {wrong[0]}", subject=sides.link.name,
                remedy="Mend that, then resume.",
            )  # fmt: skip
        starts = self._promoted_ends()
        record = run.role_record(sides.old, "realigning", "")
        if run.role().rank != record.role().rank:  # once it runs, its checkpoints are its own
            place_starts(sides, sides.old, starts, clock=run.clock, check=run.journal.check_ours)
        goal = sides.offsets(sides.old, link_keys(sides, sides.old))
        return Done(
            f"{sides.flow(sides.old).id} begins",
            {"starts": by_topic(starts), "goal": by_topic(goal)},
        )

    def _promoted_ends(self) -> dict[TopicPartition, int]:
        """Where the active side's logs ended when it was promoted, by its own journal."""
        run = self._run
        link = run.sides.link.name
        for one in reversed(run.journal.state.transitions(link)):
            if one.target != run.sides.old.alias or one.id == run.journal.header.id:
                continue
            if one.options.get("stays"):
                return {}  # it was active before as well: the flow goes on where it was
            for step in run.journal.state.steps(link, one.id):
                if step.step == Step.PROMOTE and step.state == "done":
                    return by_key(step.evidence.get("newEnds"))
        return {}

    def catch_up(self) -> Done:
        """The returning side has what the active one had."""
        sides = self._run.sides
        return Done(f"{sides.new.alias} has caught up and mirrors {sides.old.alias}")
