"""Storing what was taken over from MirrorMaker 2, as checkpoints of our own.

Order, and why: control topics and aliases first (repeatable, and nothing moves by them); then the
controller producer, which fences any other controller; then every lane's transactional id, so that no
lane can have begun meanwhile; then what was shown is read again. Only if it still holds, layout and
checkpoints are written in one transaction. Interrupted anywhere, nothing was taken over or all of it.
"""

from replicator.clock import Clock
from replicator.control.controller.bootstrap import bootstrap_pair
from replicator.control.lanes.layout import decide_layout, lane_in
from replicator.control.operator.mm2_adoption import CLIENT_ID, Survey, own_checkpoints, survey
from replicator.control.records.pair_records import Layout
from replicator.control.store.controller_writer import ControllerWriter, Placed
from replicator.errors import RefusedError
from replicator.formats.checkpoint import ADOPTED, Checkpoint
from replicator.identifiers import checkpoints_topic, control_topic
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.kafka.logs.compacted_topic import ensure_compacted_topic
from replicator.topology.plan import Plan


def adopt(plan: Plan, shown: Survey, *, clock: Clock) -> None:
    """Makes every partition start where the survey said.

    Raises:
        RefusedError: something has changed since the survey; nothing was taken over.
        ClusterError: a cluster does not answer; nothing was taken over.
        UnknownOutcomeError: no answer to the last step; a repetition says what became of it.
    """
    pair = shown.pair
    with (
        ClusterAdmin(pair.source, client_id=CLIENT_ID) as source,
        ClusterAdmin(pair.target, client_id=CLIENT_ID) as target,
    ):
        control = bootstrap_pair(
            plan=plan, pair=pair, source_admin=source, target_admin=target,
            clock=clock, client_id=CLIENT_ID,
        )  # fmt: skip
        partitions = {str(flow.link): 0 for flow in pair.flows}
        for start in shown.starts:
            partitions[start.link] += 1
        decision = decide_layout(
            pair, control.layout(pair.source.alias), partitions=partitions,
            now_ms=round(clock.now() * 1000),
        )  # fmt: skip
        if decision.change == "fenced":
            raise RefusedError(
                f"the lanes of the flow have to change first ({decision.reason})",
                subject=str(pair.id),
                remedy="Run 'replicator apply', then try again.",
            )
        name = checkpoints_topic(plan.topology, pair.source.alias)
        topic = ensure_compacted_topic(target, name, partitions=decision.layout.total)
    writer = ControllerWriter(pair, plan.topology, client_id=CLIENT_ID)
    try:
        writer.fence_lanes(range(decision.layout.total))
        _refuse_changes(plan, shown, topic.partitions)
        placed = list(_checkpoints(shown, decision.layout, name, at_ms=round(clock.now() * 1000)))
        if decision.change == "write":
            placed.append(Placed(control_topic(plan.topology), 0, *decision.layout.encode()))
        writer.write(placed)
    finally:
        writer.close()


def _refuse_changes(plan: Plan, shown: Survey, partitions: int) -> None:
    now = survey(plan, shown.pair, shown.mirrored)
    if own_checkpoints(plan, shown.pair, partitions) or _stored(now) != _stored(shown):
        raise RefusedError(
            "progress has changed since it was shown",
            subject=str(shown.pair.id),
            remedy="Make sure that MirrorMaker 2 is stopped on every machine, and try again.",
        )


def _stored(found: Survey) -> dict[tuple[str, int], tuple[str, int | None]]:
    return {
        (start.topic, start.partition): (start.topic_id, start.last_copied)
        for start in found.starts
    }


def _checkpoints(shown: Survey, layout: Layout, name: str, *, at_ms: int) -> "list[Placed]":
    placed: list[Placed] = []
    for start in shown.starts:
        block = layout.block(start.link)
        if start.offset is None or block is None:
            continue
        checkpoint = Checkpoint(
            topic=start.topic,
            partition=start.partition,
            offset=start.offset,
            topic_id=start.topic_id,
            at_ms=at_ms,
            extra={ADOPTED: start.offset},
        )
        lane = lane_in(block, start.topic, start.partition)
        placed.append(Placed(name, lane, checkpoint.key(), checkpoint.value()))
    return placed
