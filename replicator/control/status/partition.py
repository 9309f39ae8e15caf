"""The state of one source partition, as ``status`` shows it. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from replicator.control.lanes.checkpoint_moves import lane_of_link
from replicator.control.records.pair_records import TopicRecord
from replicator.control.status.facts import PairFacts
from replicator.errors import SourceDamagedError
from replicator.formats.checkpoint import Checkpoint
from replicator.problem import Problem
from replicator.topology.plan import FlowPlan

State = Literal["waiting", "seeding", "replicating", "paused", "stopped", "failed"]

_NEAR_THE_EDGE = 0.05
"""A position in the oldest part of a log that retention is eating is about to be overtaken."""
_LOG_WORTH_A_WARNING = 1000

_TARGET_LOSS_SHOWN_MS = 24 * 3600 * 1000

_STOPPED_REMEDY = (
    "Look at what is gone; to go on without it: replicator resume --flow '{flow}' --topic {topic} "
    "--partition {partition} --accept-gap"
)


_REGRESSED_REMEDY = (
    "Which records are missing cannot be found, because the copies carry no positions. Delete '{target}' on "
    "{cluster} and create it again, empty, with as many partitions: within a minute it is copied again "
    "from its start. Or go on without them: replicator resume --flow '{flow}' --topic {topic} "
    "--partition {partition} --accept-gap"
)

_DAMAGED_REMEDY = (
    " If no replica has them whole, this gives up what cannot be read and goes on behind it (first with "
    "--dry-run, which says what): replicator resume --flow '{flow}' --topic {topic} --partition {partition} "
    "--accept-gap"
)

_ANSWERS = "Check that the partition has a leader on the source, and our rights to it."


@dataclass(frozen=True, slots=True)
class WaitingBehind:
    """The open source transaction that ``records`` of a partition wait behind; ``text`` says it all."""

    first_offset: int
    records: int
    transactional_id: str
    since_ms: int
    age_seconds: float
    text: str

    def as_json(self) -> dict[str, object]:
        """Under the field names of the contract."""
        return {
            "firstOffset": self.first_offset,
            "records": self.records,
            "transactionalId": self.transactional_id,
            "sinceMs": self.since_ms,
            "ageSeconds": self.age_seconds,
            "text": self.text,
        }


@dataclass(frozen=True, slots=True)
class PartitionStatus:
    """One partition; None where a side did not answer.

    ``source_end`` counts what stands behind an open transaction, and so does the lag.
    """

    partition: int
    state: State
    source_start: int | None
    source_end: int | None
    position: int | None
    target_end: int | None
    lag_records: int | None
    lag_seconds: float | None
    open_transaction: WaitingBehind | None = None
    problems: tuple[Problem, ...] = ()

    def as_json(self) -> dict[str, object]:
        """The partition under the field names of the contract."""
        return {
            "partition": self.partition,
            "state": self.state,
            "sourceStart": self.source_start,
            "sourceEnd": self.source_end,
            "position": self.position,
            "targetEnd": self.target_end,
            "lagRecords": self.lag_records,
            "lagSeconds": self.lag_seconds,
            "openTransaction": self.open_transaction and self.open_transaction.as_json(),
        }


def partition_status(
    flow: FlowPlan,
    topic: TopicRecord,
    partition: int,
    facts: PairFacts,
    owned: frozenset[int],
    *,
    failing: Mapping[str, Problem],
) -> PartitionStatus:
    """Joins both clusters' facts about one partition.

    Args:
        flow: whose partition it is.
        topic: its record.
        partition: the number.
        facts: what was read.
        owned: the lanes that have a worker.
        failing: what keeps partitions of the flow from moving now, by ``topic/partition``.
    """
    key = (topic.topic, partition)
    checkpoint = facts.checkpoints.get(key)
    start, stable = facts.source_starts.get(key), facts.source_ends.get(key)
    end = facts.source_highs.get(key, stable)
    open_transaction = _open_transaction(facts, key)
    position = checkpoint.offset if checkpoint is not None else None
    lag = _lag(flow, topic.is_late(partition), position, start, end)
    state, problems = _state(flow, topic, partition, facts, owned)
    place = f"{topic.topic}/{partition}"
    failure = failing.get(place)
    unknown = facts.source_errors.get(key)
    if failure is None and unknown is not None:  # at its end, or behind it? nobody can say
        failure = Problem(unknown.code, place, unknown.message, unknown.remedy or _ANSWERS)
    if failure is not None and failure.code == SourceDamagedError.code:
        told = _DAMAGED_REMEDY.format(flow=flow.id, topic=topic.topic, partition=partition)
        failure = replace(failure, remedy=failure.remedy + told)
    if state == "replicating" and failure is not None:
        state, problems = "failed", (failure,)
    overtaking = _overtaking(topic, partition, position, start, end)
    lost = _target_loss(flow, topic, partition, checkpoint, facts.now_ms)
    found = (*problems, *(one for one in (overtaking, lost) if one is not None))
    return PartitionStatus(
        partition=partition,
        state=state,
        source_start=start,
        source_end=end,
        position=position,
        target_end=facts.target_ends.get((topic.target, partition)),
        lag_records=lag,
        lag_seconds=_lag_seconds(lag, facts, key),
        open_transaction=open_transaction,
        problems=found,
    )


def _state(
    flow: FlowPlan, topic: TopicRecord, partition: int, facts: PairFacts, owned: frozenset[int]
) -> tuple[State, tuple[Problem, ...]]:
    key = (topic.topic, partition)
    checkpoint = facts.checkpoints.get(key)
    if topic.state != "active" or partition >= topic.working_partitions:
        return "stopped", ()  # the topic's own problems say why
    if checkpoint is not None and checkpoint.problem and not _accepted(facts, flow, key):
        problem = Problem(
            checkpoint.problem,
            f"{topic.topic}/{partition}",
            checkpoint.detail,
            (
                _REGRESSED_REMEDY if checkpoint.problem == "TARGET_REGRESSED" else _STOPPED_REMEDY
            ).format(
                flow=flow.id,
                topic=topic.topic,
                partition=partition,
                target=topic.target,
                cluster=flow.target,
            ),
        )
        return "stopped", (problem,)
    seed = facts.control.seed(flow.source, flow.link, topic.topic, partition)
    if seed is not None and seed.state != "done" and seed.purpose == "history":
        return "seeding", ()
    if facts.control.paused(flow.id, flow.link, topic.topic, partition):
        return "paused", ()
    if facts.source_problem is not None:
        return "failed", ()
    if flow.policy.runtime == "spark":
        held = facts.control.copied_by_spark(flow.source, flow.link, topic.topic, partition)
        return ("replicating" if held and facts.streams(flow) else "waiting"), ()
    layout = facts.control.layout(flow.source)
    lane = lane_of_link(layout, flow.link, topic.topic, partition) if layout is not None else None
    if lane is None or lane not in owned or checkpoint is None:
        return "waiting", ()
    return "replicating", ()


def _accepted(facts: PairFacts, flow: FlowPlan, key: tuple[str, int]) -> bool:
    """Whether an operator's decision is on its way that the lane has not acted on yet."""
    gap = facts.control.gap(flow.source, *key)
    checkpoint = facts.checkpoints[key]
    return gap is not None and gap.unreadable is None and gap.token != checkpoint.accepted_gap


def _lag(
    flow: FlowPlan, late: bool, position: int | None, start: int | None, end: int | None
) -> int | None:
    if end is None:
        return None
    if position is not None:
        return max(0, end - position)
    if flow.policy.start_from.kind == "latest" and not late:
        return 0
    return max(0, end - (start or 0))


def _lag_seconds(lag: int | None, facts: PairFacts, key: tuple[str, int]) -> float | None:
    """The age of the first record that is not copied yet."""
    if lag is None:
        return None
    if lag == 0:
        return 0.0
    held = facts.open_transactions.get(key)
    oldest_ms = facts.oldest_waiting_ms.get(key, None if held is None else held.known_since_ms)
    if oldest_ms is None:
        return None
    return round(max(0.0, (facts.now_ms - oldest_ms) / 1000), 3)


def _target_loss(
    flow: FlowPlan,
    topic: TopicRecord,
    partition: int,
    checkpoint: Checkpoint | None,
    now_ms: int,
) -> Problem | None:
    """What the target had lost and got again, for as long as people should read of it."""
    if checkpoint is None or not checkpoint.target_loss.count:
        return None
    loss = checkpoint.target_loss
    if now_ms - loss.at_ms > _TARGET_LOSS_SHOWN_MS:
        return None
    return Problem(
        "TARGET_REGRESSED",
        f"{topic.topic}/{partition}",
        loss.detail,
        f"Find out why {flow.target} lost records. They are copied again by themselves; groups that "
        f"had read them there may read them twice.",
    )


def _open_transaction(facts: PairFacts, key: tuple[str, int]) -> WaitingBehind | None:
    """What records of a partition wait behind; None where nothing waits, or nobody told it."""
    held = facts.open_transactions.get(key)
    high, stable = facts.source_highs.get(key), facts.source_ends.get(key)
    if held is None or high is None or stable is None or stable >= high:
        return None
    return WaitingBehind(
        first_offset=held.offset,
        records=high - stable,
        transactional_id=held.transactional_id,
        since_ms=held.known_since_ms,
        age_seconds=round(max(0, facts.now_ms - held.known_since_ms) / 1000, 1),
        text=held.age_words(now_ms=facts.now_ms),
    )


def _overtaking(
    topic: TopicRecord, partition: int, position: int | None, start: int | None, end: int | None
) -> Problem | None:
    if position is None or start is None or end is None or start == 0:
        return None
    kept = end - start
    if kept < _LOG_WORTH_A_WARNING or position >= end or position < start:
        return None
    if position - start >= kept * _NEAR_THE_EDGE:
        return None
    return Problem(
        "RETENTION_OVERTAKING",
        f"{topic.topic}/{partition}",
        f"retention has removed records up to {start} and the copy is only at {position}",
        "Lengthen the source's retention, or raise the throttle, until the copy has caught up.",
    )
