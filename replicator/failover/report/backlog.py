"""What a flow still has to copy, by partition, and of which partitions that is not known. Pure.

Invariant: a partition counts as copied only by an answer of its own. One that is hidden, was created
anew, was cut below what was copied, stopped or was not answered for is unknown, never 0.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from replicator.formats.checkpoint import Checkpoint
from replicator.identifiers import JsonObject, TopicPartition

SHOWN = 3
WHOLE_TOPIC = -1


@dataclass(frozen=True, slots=True)
class Unknown:
    """A partition, or a whole topic, of which nobody can say how much is missing; and why."""

    topic: str
    reason: str
    partition: int = WHOLE_TOPIC

    def words(self) -> str:
        """For people."""
        where = self.topic if self.partition == WHOLE_TOPIC else f"{self.topic}/{self.partition}"
        return f"{where}: {self.reason}"

    def as_json(self) -> JsonObject:
        """As reports carry it; ``partition`` is null for a whole topic."""
        partition = None if self.partition == WHOLE_TOPIC else self.partition
        return {"topic": self.topic, "partition": partition, "reason": self.reason}


def unknown_words(unknown: tuple[Unknown, ...]) -> str:
    """The first few, in one line; empty where all is known."""
    shown = "; ".join(one.words() for one in unknown[:SHOWN])
    return shown + (f"; and {len(unknown) - SHOWN} more" if len(unknown) > SHOWN else "")


@dataclass(frozen=True, slots=True)
class SourceLook:
    """What the source said a moment ago.

    Attributes:
        ends: where logs end, open transactions included.
        starts: their oldest records.
        stable: last stable offsets; below the end where a transaction is open.
        refused: why a partition was not answered for.
        topic_ids: of topics that were asked for by name.
        absent: why a topic on record was not described.
        gone: topics of drills, which have deleted them.
    """

    ends: Mapping[TopicPartition, int]
    starts: Mapping[TopicPartition, int] = field(default_factory=dict)
    stable: Mapping[TopicPartition, int] = field(default_factory=dict)
    refused: Mapping[TopicPartition, str] = field(default_factory=dict)
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    absent: Mapping[str, str] = field(default_factory=dict)
    gone: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Backlog:
    """Records to copy by partition, what is not known, and where transactions are open."""

    records: Mapping[TopicPartition, int]
    unknown: tuple[Unknown, ...] = ()
    open_from: Mapping[TopicPartition, int] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """Of what is known."""
        return sum(self.records.values())

    @property
    def known(self) -> int | None:
        """The total; None where a partition is unknown."""
        return None if self.unknown else self.total


def lag_of(
    ends: Mapping[TopicPartition, int],
    starts: Mapping[TopicPartition, int],
    checkpoints: Mapping[TopicPartition, Checkpoint],
) -> dict[TopicPartition, int]:
    """Records still to copy by partition; a partition never copied lacks all it has."""
    lag: dict[TopicPartition, int] = {}
    for key, end in ends.items():
        checkpoint = checkpoints.get(key)
        start = starts.get(key, 0)
        position = start if checkpoint is None else max(start, checkpoint.offset)
        lag[key] = max(0, end - position)
    return lag


def backlog_of(
    look: SourceLook,
    checkpoints: Mapping[TopicPartition, Checkpoint],
    recorded: Mapping[str, int],
    upto: Mapping[TopicPartition, int] | None = None,
) -> Backlog:
    """Compares what the source said with what was copied.

    Args:
        look: at the source.
        checkpoints: of the flow.
        recorded: partitions of the topics that the flow copies, by its own records.
        upto: ends up to which records count, and no others; None: the source's own.
    """
    unknown = [Unknown(topic, reason) for topic, reason in sorted(look.absent.items())]
    for topic, count in sorted(recorded.items()):
        if topic in look.absent or topic in look.gone:
            continue
        for number in range(count):
            reason = _why_unknown(look, checkpoints.get((topic, number)), (topic, number))
            if reason:
                unknown.append(Unknown(topic, reason, number))
    unrecorded = {key: why for key, why in look.refused.items() if key[0] not in recorded}
    unknown += [Unknown(key[0], why, key[1]) for key, why in sorted(unrecorded.items())]
    still_open = {
        key: look.stable[key] for key, end in look.ends.items() if look.stable.get(key, end) < end
    }
    ends = look.ends
    if upto is not None:
        ends = {key: min(end, upto[key]) for key, end in look.ends.items() if key in upto}
    return Backlog(lag_of(ends, look.starts, checkpoints), tuple(unknown), still_open)


def returned_short(
    look: SourceLook, checkpoints: Mapping[TopicPartition, Checkpoint]
) -> tuple[Unknown, ...]:
    """Partitions that have less than what was copied from them: their log was cut or created anew."""
    found = [Unknown(topic, reason) for topic, reason in sorted(look.absent.items())]
    for (topic, number), checkpoint in sorted(checkpoints.items()):
        if topic in look.absent:
            continue
        reason = _why_short(look, checkpoint, (topic, number))
        if reason:
            found.append(Unknown(topic, reason, number))
    return tuple(found)


def _why_unknown(look: SourceLook, checkpoint: Checkpoint | None, key: TopicPartition) -> str:
    if key in look.refused:
        return look.refused[key]
    if key not in look.ends:
        return "the cluster does not list it"
    if checkpoint is None:
        return ""
    if checkpoint.problem:
        return f"copying stopped: {checkpoint.problem} {checkpoint.detail}".rstrip()
    return _why_short(look, checkpoint, key)


def _why_short(look: SourceLook, checkpoint: Checkpoint, key: TopicPartition) -> str:
    now = look.topic_ids.get(key[0], "")
    if now and checkpoint.topic_id and now != checkpoint.topic_id and checkpoint.offset:
        return f"the topic was created anew; {checkpoint.offset} offsets of the old one were copied"
    end = look.ends.get(key)
    if end is not None and end < checkpoint.offset:
        return f"its log ends at {end}, and was copied up to {checkpoint.offset}"
    return ""
