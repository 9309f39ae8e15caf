"""Taking a lane over: read what its last owner stored, ask the source, decide every start.

Runs after the producer was initialised, so the last owner is fenced and its open transaction aborted:
nothing can be added to the checkpoints that are read here.
"""

from collections.abc import Callable, Iterable, Mapping

from replicator.dataplane.progress.partition_state import PartitionState
from replicator.dataplane.session.start_position import SourceLog, StartDecision, decide_start
from replicator.dataplane.transport.spec import LaneSpec
from replicator.errors import ReplicatorError
from replicator.formats.checkpoint import Checkpoint
from replicator.kafka.admin import ClusterAdmin
from replicator.kafka.checkpoint_log import read_checkpoint_records


def read_lane_records(spec: LaneSpec, *, client_id: str) -> dict[bytes, bytes]:
    """The last value of every key in the lane's partition: checkpoints, and its index.

    Backfill tasks write there too: what the last owner stored may stand behind a transaction of one
    of them that is open now, and must not be missed.
    """
    return read_checkpoint_records(
        spec.topology, spec.source.alias, spec.target, [spec.lane],
        client_id=client_id, timeout_seconds=30.0, past_open_transactions=True,
    )[spec.lane]  # fmt: skip


def decide_starts(
    spec: LaneSpec,
    states: Iterable[PartitionState],
    checkpoints: Mapping[tuple[str, int], Checkpoint],
    source: ClusterAdmin,
    *,
    on_failure: Callable[[PartitionState, ReplicatorError], None],
) -> dict[PartitionState, StartDecision]:
    """Asks the source once for all partitions and decides each one.

    A partition about which the source cannot answer now is left out, and ``on_failure`` is told why: it
    still needs its check, and is asked about again.
    """
    states = list(states)
    keys = [state.key for state in states]
    if not keys:
        return {}
    described = source.describe_each_topic({topic for topic, _ in keys})
    ids = {
        name: topic.topic_id
        for name, topic in described.items()
        if not isinstance(topic, ReplicatorError)
    }
    known = [key for key in keys if key[0] in ids]
    earliest = source.offsets(known, at="earliest", isolation="read_uncommitted")
    latest = source.offsets(known, at="latest", isolation="read_committed")
    start_from = spec.settings.start_from
    timed: Mapping[tuple[str, int], int | ReplicatorError] = {}
    first = [key for key in known if key not in checkpoints]
    if first and start_from.kind == "timestamp" and start_from.timestamp_ms is not None:
        timed = source.offsets(first, at=start_from.timestamp_ms, isolation="read_committed")
    decisions: dict[PartitionState, StartDecision] = {}
    for state in states:
        low, high = earliest.get(state.key), latest.get(state.key)
        at_timestamp = timed.get(state.key)
        answers = (described.get(state.topic), low, high, at_timestamp)
        refused = next((each for each in answers if isinstance(each, ReplicatorError)), None)
        if refused is not None:
            on_failure(state, refused)
        if (
            not isinstance(low, int)
            or not isinstance(high, int)
            or isinstance(at_timestamp, ReplicatorError)
        ):
            continue
        facts = SourceLog(
            topic_id=ids[state.topic],
            earliest=low,
            latest=max(low, high),
            at_timestamp=at_timestamp if at_timestamp is not None and at_timestamp >= 0 else None,
            diverged=state.diverged,
        )
        decision = decide_start(
            checkpoints.get(state.key),
            facts,
            start_from=start_from,
            # Canaries that retention removed before they were copied are no loss.
            on_truncation=spec.settings.on_truncation if state.counted else "report",
            accept_gap=state.work.accept_gap,
        )
        decisions[state] = decision
        apply_decision(state, decision, facts, checkpoints.get(state.key))
    return decisions


def apply_decision(
    state: PartitionState, decision: StartDecision, facts: SourceLog, checkpoint: Checkpoint | None
) -> None:
    """Writes the decision into the partition's state."""
    if checkpoint is not None and state.position < 0:
        state.restore(checkpoint)  # a new one; one under examination keeps its own counters
    state.position = decision.offset
    same_place = checkpoint is not None and checkpoint.offset == decision.offset
    state.position_epoch = (
        checkpoint.position_epoch
        if checkpoint is not None and same_place and decision.lost is None
        else -1
    )
    state.committed = (
        decision.offset if checkpoint is None else min(decision.offset, max(checkpoint.offset, 0))
    )
    state.problem = decision.problem
    keeps_detail = not decision.store and (checkpoint is None or not checkpoint.problem)
    state.detail = decision.detail or (state.detail if keeps_detail else "")
    state.accepted_gap = decision.accepted_gap
    state.source_end = max(facts.latest, decision.offset)
    state.needs_check = False
    state.diverged = False
    if checkpoint is not None and checkpoint.problem == "TARGET_REFUSES":
        accepted = decision.accepted_gap != checkpoint.accepted_gap
        state.retry_offset = checkpoint.offset if accepted else -1
    if decision.problem and checkpoint is not None:
        # The stored id is what proves that the topic was recreated: keep it until that is accepted.
        state.topic_id = checkpoint.topic_id
    else:
        state.topic_id = facts.topic_id
        if decision.lost is not None:
            state.leader_epoch = -1
