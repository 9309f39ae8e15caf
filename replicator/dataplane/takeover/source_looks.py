"""Asking the source about the partitions of a lane: what their logs are now."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from replicator.dataplane.progress.partition_state import PartitionState
from replicator.dataplane.takeover.stale_answers import Answer, stale_answers
from replicator.dataplane.takeover.start_position import SourceLog
from replicator.dataplane.transport.spec import LaneSpec, lane_client_id
from replicator.errors import ReplicatorError
from replicator.formats.checkpoint import Checkpoint
from replicator.identifiers import TopicPartition
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.kafka.admin.offsets import LogEnd

_Offsets = Mapping[TopicPartition, int | ReplicatorError]


@dataclass(frozen=True, slots=True)
class SourceLooks:
    """What the source says of partitions, or why it cannot say it now; those in neither have no topic there."""

    logs: dict[TopicPartition, SourceLog] = field(default_factory=dict)
    failures: dict[TopicPartition, ReplicatorError] = field(default_factory=dict)


def look_at_source(
    spec: LaneSpec,
    states: Collection[PartitionState],
    checkpoints: Mapping[TopicPartition, Checkpoint],
    source: ClusterAdmin,
) -> SourceLooks:
    """Asks once for all partitions, and again about those that seem to have lost what was read of them.

    Raises:
        ReplicatorError: the source cannot be reached.
    """
    if not states:
        return SourceLooks()
    keys = [state.key for state in states]
    described = source.describe_each_topic({topic for topic, _ in keys})
    ids = {
        name: topic.topic_id
        for name, topic in described.items()
        if not isinstance(topic, ReplicatorError)
    }
    known = [key for key in keys if key[0] in ids]
    earliest = source.offsets(known, at="earliest", isolation="read_uncommitted")
    latest = source.offsets(known, at="latest", isolation="read_committed")
    timed = _times(spec, [key for key in known if key not in checkpoints], source)
    found = SourceLooks()
    for state in states:
        key = state.key
        low, high, time = earliest.get(key), latest.get(key), timed.get(key)
        answers = (described.get(state.topic), low, high, time)
        failure = next((each for each in answers if isinstance(each, ReplicatorError)), None)
        if failure is not None:
            found.failures[key] = failure
        elif (
            isinstance(low, int) and isinstance(high, int) and not isinstance(time, ReplicatorError)
        ):
            found.logs[key] = SourceLog(
                topic_id=ids[state.topic],
                earliest=low,
                latest=max(low, high),
                at_timestamp=time if time is not None and time >= 0 else None,
                diverged=state.diverged,
            )
    return _without_what_is_stale(spec, states, checkpoints, source, found)


def _times(spec: LaneSpec, first: list[TopicPartition], source: ClusterAdmin) -> _Offsets:
    """Where partitions that begin now begin, if that is at a time."""
    start_from = spec.settings.start_from
    if not first or start_from.kind != "timestamp" or start_from.timestamp_ms is None:
        return {}
    return source.offsets(first, at=start_from.timestamp_ms, isolation="read_committed")


def _without_what_is_stale(
    spec: LaneSpec,
    states: Iterable[PartitionState],
    checkpoints: Mapping[TopicPartition, Checkpoint],
    source: ClusterAdmin,
    found: SourceLooks,
) -> SourceLooks:
    """Asks again about what seems to be lost, together with the epoch of who answers, and whether that is the last."""
    suspects = {
        key: held
        for key, log in found.logs.items()
        if (held := checkpoints.get(key)) is not None and _lacks(log, held)
    }
    if not suspects:
        return found
    stable = source.log_ends(suspects, isolation="read_committed")
    ends = source.log_ends(suspects)
    logs, failures, answers = dict(found.logs), dict(found.failures), {}
    for key, held in suspects.items():
        log = logs.pop(key)
        told = (stable.get(key), ends.get(key))
        refused = next((each for each in told if isinstance(each, ReplicatorError)), None)
        both = [each for each in told if isinstance(each, LogEnd)]
        if refused is not None:
            failures[key] = refused
        elif len(both) == len(told):
            behind, end = both
            epoch = min(behind.leader_epoch, end.leader_epoch)
            answers[key] = Answer(
                log.topic_id, epoch, held.topic_id, held.position_epoch, heard=log.diverged
            )
            records = spec.settings.engine == "records"
            logs[key] = replace(
                log,
                latest=max(log.earliest, behind.offset),
                end=end.offset if records and held.offset > behind.offset else None,
            )
    stale = stale_answers(spec.source, answers, client_id=lane_client_id(spec))
    for state in states:
        if state.key in stale:
            # Its client may have met that broker. Where it reads on, it is told again if that is so.
            state.diverged = False
    kept = {key: log for key, log in logs.items() if key not in stale}
    return SourceLooks(kept, {**failures, **stale})


def _lacks(log: SourceLog, held: Checkpoint) -> bool:
    another = bool(held.topic_id and log.topic_id) and held.topic_id != log.topic_id
    return another or log.diverged or held.offset > log.latest
