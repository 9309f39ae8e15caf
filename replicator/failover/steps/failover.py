"""What each step of a failover does. Nothing here waits for the old cluster."""

from replicator.control.records.role_records import DrainedRecord
from replicator.errors import ReplicatorError
from replicator.failover.clusters.groups_move import GroupMove, positions_on_new
from replicator.failover.clusters.lag import link_keys, stored_checkpoints
from replicator.failover.clusters.link_clusters import by_topic
from replicator.failover.clusters.reverse_flow import fence_lanes
from replicator.failover.rules.machine import Step
from replicator.failover.steps.fence_steps import fence_writers
from replicator.failover.steps.journal import TakenOverError
from replicator.failover.steps.preflight import Preflight
from replicator.failover.steps.switchover import Done
from replicator.failover.steps.transition_context import TransitionContext


class FailoverSteps:
    """Steps of promoting a cluster while the other may be down; for one run."""

    def __init__(self, run: TransitionContext) -> None:
        self._run = run

    def declare(self) -> Done:
        """Declares the old cluster lost: nothing is copied from it any more."""
        run = self._run
        loss = run.loss
        stated = f"{loss.records} records stated" if loss.known else "the loss is not known"
        return Done(
            f"{run.clusters.old.alias} is declared lost: {stated}",
            {"loss": loss.as_json()},
        )

    def promote(self) -> Done:
        """Fences writers of an old cluster that answers, then the old epoch's lanes; measures the loss."""
        run, clusters = self._run, self._run.clusters
        # Writers first: what is measured then is the loss, and nothing is added to it later.
        fenced = self._fence_old()
        lanes = fence_lanes(clusters, clusters.old, clock=run.clock)
        final = Preflight(clusters, run.request, run.role(), run.clock).loss()
        stated = run.journal.evidence(Step.DECLARE).get("loss")
        positions = {
            key: checkpoint.offset
            for key, checkpoint in stored_checkpoints(clusters, clusters.old).items()
        }
        starts = clusters.offsets(clusters.new, link_keys(clusters, clusters.new))
        return Done(
            f"{clusters.new.alias} is active in epoch {run.role().epoch}, {lanes} lanes fenced",
            {
                "newEnds": by_topic(starts),
                "positions": by_topic(positions),
                "lanes": lanes,
                "loss": final.as_json(),
                "stated": stated,
                "measured": clusters.answers(clusters.old),
                "oldSideFenced": fenced,
            },
        )

    def complete(self) -> Done:
        """Completes group positions from what can be read."""
        return self._groups(Step.COMPLETE, {"oldSideFenced": self._fence_old()})

    def move_groups(self) -> Done:
        """On a link without an active cluster: syncs group positions once more, exactly."""
        return self._groups(Step.MOVE_GROUPS, {"loss": self._run.loss.as_json()})

    def mark(self) -> Done:
        """Marks the cluster that is left as drained, for operators to see."""
        run, clusters = self._run, self._run.clusters
        record = DrainedRecord(
            link=clusters.link.name, cluster=clusters.old.alias,
            at_ms=run.journal.now_ms(), by=run.journal.header.by,
        )  # fmt: skip
        hooks = run.hooks(Step.MARK, "after-promote")
        return Done(
            f"{clusters.old.alias} is marked as drained; records are still copied both ways",
            {"openedAt": run.journal.now_ms(), "after-promote": hooks},
            (record,),
        )

    def unmark(self) -> Done:
        """Removes the mark of the cluster that returns."""
        run, clusters = self._run, self._run.clusters
        record = DrainedRecord(link=clusters.link.name, cluster=clusters.new.alias, at_ms=0, by="")
        run.journal.erase(record)
        for cluster in clusters.plan.clusters:
            if cluster.alias in clusters.link.clusters and cluster != run.journal_cluster:
                run.journal.erase_on(cluster, record)
        return Done(f"{clusters.new.alias} is in use again", {"openedAt": run.journal.now_ms()})

    def _groups(self, step: Step, evidence: dict[str, object]) -> Done:
        run, clusters = self._run, self._run.clusters
        if clusters.answers(clusters.old):
            move = GroupMove(clusters, clock=run.clock)
            try:
                seen = move.round(commit=True, whole=False)  # some are better than none
            except ReplicatorError as error:
                run.notify(step, error.message)
            else:
                evidence["groups"] = seen.evidence()
                self._tell_unheard(step, seen.report.unheard, evidence)
                return Done(f"{len(seen.report.groups)} groups carried over", evidence)
            finally:
                move.close()
        found, unheard = positions_on_new(clusters)
        self._tell_unheard(step, unheard, evidence)
        evidence["groups"] = found
        return Done(f"{len(found)} groups keep their last synced positions", evidence)

    def _tell_unheard(
        self, step: Step, unheard: ReplicatorError | None, evidence: dict[str, object]
    ) -> None:
        if unheard is not None:
            evidence["groupsNotSeen"] = unheard.message
            self._run.notify(
                step, f"there may be other groups, which are not seen: {unheard.message}"
            )

    def _fence_old(self) -> str:
        """Fences writers of an old cluster that still answers, where a method allows it."""
        run, clusters = self._run, self._run.clusters
        if not clusters.answers(clusters.old):
            return "it does not answer"
        fencing = clusters.link.procedure.fencing
        if fencing is None or fencing.method == "manual":
            return "no method"
        try:
            fence_writers(run, clusters.old, fencing)
        except TakenOverError:
            raise
        except ReplicatorError as error:
            return f"not fenced: {error.message}"
        return fencing.method
