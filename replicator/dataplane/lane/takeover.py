"""Taking a lane over: read what its last owner stored, ask the source, decide every start.

Runs after the producer was initialised, so the last owner is fenced and what it left open is taken
back: the checkpoints read here are the whole truth.
"""

from collections.abc import Iterable, Mapping

from replicator.dataplane.lane.start_position import SourceLog, StartDecision, decide_start
from replicator.dataplane.progress.partition_state import PartitionState
from replicator.dataplane.transport.spec import LaneSpec
from replicator.errors import ReplicatorError
from replicator.formats.checkpoint import Checkpoint
from replicator.kafka.admin import ClusterAdmin
from replicator.kafka.checkpoint_log import read_checkpoint_records


def read_lane_records(spec: LaneSpec, *, client_id: str) -> dict[bytes, bytes]:
    """The last value of every key in the lane's partition: checkpoints, and its index.

    Seeding tasks write there too: what the last owner stored may stand behind a transaction of one
    of them that is open now, and must not be missed.
    """
    return read_checkpoint_records(
        spec.topology, spec.source.alias, spec.target, [spec.lane],
        client_id=client_id, timeout_seconds=30.0, past_open_transactions=True,
    )[spec.lane]  # fmt: skip


def decide_starts(
    spec: LaneSpec,
    routes: Iterable[PartitionState],
    checkpoints: Mapping[tuple[str, int], Checkpoint],
    source: ClusterAdmin,
) -> dict[PartitionState, StartDecision]:
    """Asks the source once for all partitions and decides each one.

    A partition about which the source cannot answer now is left out: it stays suspect, and is asked
    about again.
    """
    routes = list(routes)
    keys = [route.key for route in routes]
    if not keys:
        return {}
    described = source.describe_topics({topic for topic, _ in keys})
    ids = {name: topic.topic_id for name, topic in described.items()}
    known = [key for key in keys if key[0] in ids]
    earliest = source.offsets(known, at="earliest", isolation="read_uncommitted")
    latest = source.offsets(known, at="latest", isolation="read_committed")
    start_from = spec.settings.start_from
    timed: Mapping[tuple[str, int], int | ReplicatorError] = {}
    first = [key for key in known if key not in checkpoints]
    if first and start_from.kind == "timestamp" and start_from.timestamp_ms is not None:
        timed = source.offsets(first, at=start_from.timestamp_ms, isolation="read_committed")
    decisions: dict[PartitionState, StartDecision] = {}
    for route in routes:
        low, high = earliest.get(route.key), latest.get(route.key)
        if not isinstance(low, int) or not isinstance(high, int):
            continue
        at_timestamp = timed.get(route.key)
        if isinstance(at_timestamp, ReplicatorError):
            continue
        facts = SourceLog(
            topic_id=ids[route.topic],
            earliest=low,
            latest=max(low, high),
            at_timestamp=at_timestamp if at_timestamp is not None and at_timestamp >= 0 else None,
            diverged=route.diverged,
        )
        decision = decide_start(
            checkpoints.get(route.key),
            facts,
            start_from=start_from,
            # Canaries that retention took while nobody copied are no loss.
            on_truncation=spec.settings.on_truncation if route.counted else "report",
            accept_gap=route.work.accept_gap,
        )
        decisions[route] = decision
        apply_decision(route, decision, facts, checkpoints.get(route.key))
    return decisions


def apply_decision(
    route: PartitionState, decision: StartDecision, facts: SourceLog, checkpoint: Checkpoint | None
) -> None:
    """Writes the decision into the route."""
    if checkpoint is not None and route.position < 0:
        route.restore(checkpoint)  # a fresh route; one under examination keeps its own figures
    route.position = decision.offset
    same_place = checkpoint is not None and checkpoint.offset == decision.offset
    route.position_epoch = (
        checkpoint.position_epoch
        if checkpoint is not None and same_place and decision.lost is None
        else -1
    )
    route.committed = (
        decision.offset if checkpoint is None else min(decision.offset, max(checkpoint.offset, 0))
    )
    route.problem = decision.problem
    keeps_detail = not decision.store and (checkpoint is None or not checkpoint.problem)
    route.detail = decision.detail or (route.detail if keeps_detail else "")
    route.accepted_gap = decision.accepted_gap
    route.source_end = max(facts.latest, decision.offset)
    route.suspect = False
    route.diverged = False
    route.needs_store = decision.store
    if checkpoint is not None and checkpoint.problem == "TARGET_REFUSES":
        accepted = decision.accepted_gap != checkpoint.accepted_gap
        route.tolerated = checkpoint.offset if accepted else -1
    if decision.problem and checkpoint is not None:
        # The stored id is what proves that the topic was recreated: keep it until that is accepted.
        route.topic_id = checkpoint.topic_id
    else:
        route.topic_id = facts.topic_id
        if decision.lost is not None:
            route.leader_epoch = -1
