"""What each step of a failover does. Nothing here waits for the old side."""

from replicator.control.store.role_records import DrainedRecord
from replicator.errors import ReplicatorError
from replicator.failover.clusters.groups_move import GroupMove, positions_on_new
from replicator.failover.clusters.lag import link_keys, stored_checkpoints
from replicator.failover.clusters.link_clusters import by_topic
from replicator.failover.clusters.reverse_flow import fence_lanes
from replicator.failover.rules.machine import Step, TransitionFacts
from replicator.failover.steps.fence_steps import fence_writers, unfence_writers
from replicator.failover.steps.preflight import Preflight
from replicator.failover.steps.switchover import Done
from replicator.failover.steps.transition_context import TransitionContext


class FailoverSteps:
    """Steps of promoting a side while the other may be gone; for one run."""

    def __init__(self, run: TransitionContext) -> None:
        self._run = run

    def close(self) -> None:
        """Nothing is kept open."""

    def facts(self, _step: Step, *, waited_seconds: float) -> TransitionFacts:
        """A failover waits for nothing."""
        return TransitionFacts(waited_seconds=waited_seconds)

    def declare(self) -> Done:
        """The old side is declared lost: nothing is copied from it any more."""
        run = self._run
        loss = run.loss
        stated = (
            f"{loss.records} records stated" if loss.known else "how much is missing is not known"
        )
        return Done(
            f"{run.sides.old.alias} is declared lost: {stated}",
            {"loss": loss.as_json()},
        )

    def promote(self) -> Done:
        """The new epoch stands; nobody of the old one can write any more."""
        run, sides = self._run, self._run.sides
        lanes = fence_lanes(sides, sides.old, clock=run.clock)
        final = Preflight(sides, run.request, run.role(), run.clock).loss()
        stated = run.journal.evidence(Step.DECLARE).get("loss")
        positions = {
            key: checkpoint.offset
            for key, checkpoint in stored_checkpoints(sides, sides.old).items()
        }
        starts = sides.offsets(sides.new, link_keys(sides, sides.new))
        return Done(
            f"{sides.new.alias} is active in epoch {run.role().epoch}, {lanes} lanes fenced",
            {
                "newEnds": by_topic(starts),
                "positions": by_topic(positions),
                "lanes": lanes,
                "loss": final.as_json(),
                "stated": stated,
            },
        )

    def complete(self) -> Done:
        """Group positions, from what can be read."""
        sides = self._run.sides
        fenced = self._fence_old() if sides.answers(sides.old) else "it does not answer"
        return self._groups(Step.COMPLETE, {"oldSideFenced": fenced})

    def move_groups(self) -> Done:
        """On a link without an active side: the groups' positions, once more and exactly."""
        return self._groups(Step.MOVE_GROUPS, {"loss": self._run.loss.as_json()})

    def mark(self) -> Done:
        """The side that is left is marked as drained, where people look."""
        run, sides = self._run, self._run.sides
        record = DrainedRecord(
            link=sides.link.name, cluster=sides.old.alias,
            at_ms=run.journal.now_ms(), by=run.journal.header.by,
        )  # fmt: skip
        hooks = run.hooks(Step.MARK, "after-promote")
        return Done(
            f"{sides.old.alias} is marked as drained; records go on both ways",
            {"openedAt": run.journal.now_ms(), "after-promote": hooks},
            (record,),
        )

    def unmark(self) -> Done:
        """The side that returns is marked no more."""
        run, sides = self._run, self._run.sides
        record = DrainedRecord(link=sides.link.name, cluster=sides.new.alias, at_ms=0, by="")
        run.journal.erase(record)
        for cluster in sides.plan.clusters:
            if cluster.alias in sides.link.clusters and cluster != run.home:
                run.journal.tell_erased(cluster, record)
        return Done(f"{sides.new.alias} is in use again", {"openedAt": run.journal.now_ms()})

    def _groups(self, step: Step, evidence: dict[str, object]) -> Done:
        run, sides = self._run, self._run.sides
        if sides.answers(sides.old):
            move = GroupMove(sides, clock=run.clock)
            try:
                seen = move.round(commit=True)
            except ReplicatorError as error:
                run.say(step, error.message)
            else:
                evidence["groups"] = seen.evidence()
                return Done(f"{len(seen.report.groups)} groups carried over", evidence)
            finally:
                move.close()
        found = positions_on_new(sides)
        evidence["groups"] = found
        return Done(f"{len(found)} groups stand where they were last synced", evidence)

    def _fence_old(self) -> str:
        """Writers are kept off an old side that still lives, where that can be done."""
        run, sides = self._run, self._run.sides
        fencing = sides.link.procedure.fencing
        if fencing is None or fencing.method == "manual":
            return "no method"
        try:
            fence_writers(run, sides.old, fencing)
        except ReplicatorError as error:
            return f"could not be: {error.message}"
        return fencing.method

    def release(self) -> Done:
        """Writers are let on the new side."""
        run, sides = self._run, self._run.sides
        unfence_writers(run, sides.new)
        opened_ms = run.journal.now_ms()
        hooks = run.hooks(Step.RELEASE, "after-promote")
        return Done(
            f"{sides.new.alias} takes writers", {"openedAt": opened_ms, "after-promote": hooks}
        )
