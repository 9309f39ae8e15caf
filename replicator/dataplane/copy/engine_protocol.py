"""The interface of an engine that copies consumed records, and what it reports.

An engine moves consumed records to the producer of its lane and advances each partition's position. It
never commits, never decides where a partition starts, and never owns a client.
Whole batches are carried by a session of their own (whole_batches/batch_session.py).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from replicator.dataplane.copy.source_message import SourceMessage
from replicator.dataplane.progress.partition_state import PartitionState


@dataclass(slots=True)
class Run:
    """Consecutive records of one partition; the position is behind them already.

    ``read`` counts source offsets, ``copied`` records and ``size`` bytes of values; the last two are 0
    for canaries, which are none of the flow's records. ``timestamp_ms`` is the oldest source timestamp.
    ``produced`` counts the records handed to the producer, ``last_copied`` is the source offset of the
    last of them (-1 when there is none). ``leader_epoch`` is that of the last record read (-1 when the
    source does not say).
    """

    state: PartitionState
    read: int
    copied: int
    size: int
    timestamp_ms: int
    produced: int = 0
    last_copied: int = -1
    leader_epoch: int = -1


@dataclass(frozen=True, slots=True)
class Refusal:
    """A record that cannot be copied unchanged, and why; the position is still before it.

    The caller moves the position past it (the record is in quarantine) or gives the partition a problem.
    """

    state: PartitionState
    message: SourceMessage
    code: str
    error: str


@dataclass(frozen=True, slots=True)
class SourceEvent:
    """Not a record: the end of a partition, or an error of the source."""

    message: SourceMessage


@dataclass(frozen=True, slots=True)
class EpochWentBack:
    """A record with an older leader epoch than the ones before: the log may be another one."""

    state: PartitionState


@dataclass(frozen=True, slots=True)
class LogRewritten:
    """A record where only markers and aborted records stood before: the log is another one."""

    state: PartitionState


@dataclass(frozen=True, slots=True)
class QueueFull:
    """The producer has no room; the engine tries the same record again afterwards.

    ``place``: its source topic, partition and offset.
    """

    place: tuple[str, int, int]


CopyStep = Run | Refusal | SourceEvent | EpochWentBack | LogRewritten | QueueFull


class Engine(Protocol):
    """Copies consumed records; see the module docstring for what it must not do."""

    def copy(self, messages: Sequence[SourceMessage]) -> Iterator[CopyStep]:
        """Hands every record to the producer, in order, and yields what it did or met.

        It goes on when the caller asks for the next step, and then respects what the caller decided
        (a position that was moved, a problem). Nothing is copied of partitions with a problem, or
        that need a check.
        """
        ...
