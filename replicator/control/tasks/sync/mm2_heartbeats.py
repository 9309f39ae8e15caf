"""Periodic task: MirrorMaker 2's heartbeats of a pair, once a second."""

from replicator.blocking import finished
from replicator.control.tasks.task import TaskContext
from replicator.mm2.topics.heartbeats import Heartbeats
from replicator.problem import Problem
from replicator.topology.plan import PairPlan

BEAT_SECONDS = 1.0


class Mm2HeartbeatTask:
    """A periodic task, see ``task.PeriodicTask``."""

    name = "MirrorMaker 2 heartbeats"
    interval_seconds = BEAT_SECONDS

    def __init__(self, context: TaskContext) -> None:
        source, target = context.pair.source, context.pair.target
        speaking = [pair for pair in context.plan.pairs if speaks_mm2(pair)]
        self._heartbeats = Heartbeats(
            source,
            target,
            aliases=[cluster.alias for cluster in context.plan.clusters],
            direct=[one.source.alias for one in speaking if one.target.alias == target.alias],
            beats_on_target=not any(
                (one.source.alias, one.target.alias) == (target.alias, source.alias)
                for one in speaking
            ),
            client_id=f"{context.client_id}-mm2-heartbeats",
            clock=context.clock,
        )

    async def run(self) -> tuple[Problem, ...]:
        """Sends one heartbeat; there is nothing to report."""
        await finished(self._heartbeats.turn)
        return ()

    def close(self) -> None:
        """Closes its connections."""
        self._heartbeats.close()


def speaks_mm2(pair: PairPlan) -> bool:
    """Whether any link of the pair asks for MirrorMaker 2's topics."""
    return any(flow.policy.mm2_compatibility for flow in pair.flows)


def mm2_heartbeat_task(context: TaskContext) -> Mm2HeartbeatTask | None:
    """The task, or None where no link of the pair wants it."""
    return Mm2HeartbeatTask(context) if speaks_mm2(context.pair) else None
