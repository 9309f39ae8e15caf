"""The mutable state of one source partition inside its lane; the hot path's only bookkeeping.

Everything else about a partition (what to do, what was stored) is frozen and lives in PartitionWork
and Checkpoint. A PartitionState joins the two while the lane runs.
"""

from collections.abc import Sequence

from replicator.dataplane.progress.partition_health import PartitionHealth
from replicator.dataplane.progress.target_log import TargetLog
from replicator.dataplane.transport.spec import PartitionWork
from replicator.formats.checkpoint import Checkpoint, TargetLoss
from replicator.formats.lane_stats import PartitionStateName, PartitionStats
from replicator.formats.left_out import LeftOut
from replicator.identifiers import is_canary_topic
from replicator.policy.copies.provenance import path_hop


class PartitionState:
    """One partition on its way from source to target.

    Invariants: ``position`` is the next source offset to read and goes back only where the target lost
    records; ``committed`` is the position of the newest checkpoint known to be stored, and is never
    above ``position``. Nothing is read of a partition whose ``problem`` is set. ``record_end`` is the
    offset behind the last record read (-1 when not known) and ``position_epoch`` that record's leader
    epoch; what stands between there and ``position`` are markers and aborted records. With ``epoch_of_leader`` it is
    instead the epoch of a leader under which the log reached ``record_end``. ``may_refuse`` says that
    the last look at the target saw no leader, or not all replicas in sync.
    """

    __slots__ = (
        "accepted_gap",
        "bytes",
        "committed",
        "committed_at_ms",
        "counted",
        "detail",
        "diverged",
        "dropped",
        "epoch_of_leader",
        "extra",
        "health",
        "hop_prefix",
        "leader_epoch",
        "left_out",
        "may_refuse",
        "needs_check",
        "partition",
        "position",
        "position_epoch",
        "problem",
        "quarantined",
        "ranged",
        "record_end",
        "records",
        "reported_bytes",
        "reported_records",
        "retry_offset",
        "source_end",
        "start",
        "target",
        "target_loss",
        "target_topic",
        "timestamp_ms",
        "topic",
        "topic_id",
        "work",
    )

    def __init__(self, work: PartitionWork, *, source_alias: str, provenance: str) -> None:
        self.work = work
        self.topic = work.topic
        self.partition = work.partition
        self.target_topic = work.target_topic
        self.topic_id = work.topic_id
        self.hop_prefix = (
            f"{source_alias}/{work.topic}/{work.partition}/"
            if provenance == "full"
            else path_hop(source_alias, work.target_topic).decode()
        )
        """The constant part of its records' hops; the whole hop under `provenance: path`."""
        # A canary is copied like any record, but is none of the flow's.
        self.counted = not is_canary_topic(work.topic)
        self.position = -1
        self.position_epoch = -1
        self.record_end = -1
        self.epoch_of_leader = False
        self.start = -1
        self.target = TargetLog()
        self.target_loss = TargetLoss()
        self.left_out = LeftOut()
        self.committed = -1
        self.committed_at_ms = 0
        self.timestamp_ms = -1
        self.source_end = -1
        self.leader_epoch = -1
        self.problem = ""
        self.detail = ""
        self.accepted_gap = ""
        self.records = 0
        self.bytes = 0
        self.dropped = 0
        self.quarantined = 0
        self.ranged = 0
        self.reported_records = 0
        self.reported_bytes = 0
        self.needs_check = False
        self.may_refuse = False
        self.diverged = False
        self.retry_offset = -1
        self.health = PartitionHealth()
        self.extra: dict[str, object] = {}

    @property
    def key(self) -> tuple[str, int]:
        """Topic and partition on the source."""
        return self.topic, self.partition

    @property
    def is_read(self) -> bool:
        """Whether the consumer reads it now."""
        return not self.problem and not self.needs_check and self.position >= 0

    @property
    def record_epoch(self) -> int:
        """The leader epoch of the record before the position; -1 when not known."""
        return -1 if self.epoch_of_leader else self.position_epoch

    def restore(self, checkpoint: Checkpoint) -> None:
        """Continues the counters of a stored checkpoint; the position is decided elsewhere."""
        self.timestamp_ms = checkpoint.timestamp_ms
        self.accepted_gap = checkpoint.accepted_gap
        self.detail = checkpoint.detail
        self.records = self.reported_records = checkpoint.records
        self.bytes = self.reported_bytes = checkpoint.bytes
        self.dropped = checkpoint.dropped
        self.quarantined = checkpoint.quarantined
        self.ranged = checkpoint.ranged
        self.leader_epoch = checkpoint.leader_epoch
        self.start = checkpoint.start
        self.extra = dict(checkpoint.extra)
        self.committed_at_ms = checkpoint.at_ms

    def count_copied(self, records: int, size: int) -> None:
        """Takes in that so many records, of ``size`` bytes, were copied."""
        self.records += records
        self.bytes += size
        if self.work.in_range:
            self.ranged += records

    def checkpoint(self, *, at_ms: int) -> Checkpoint:
        """The checkpoint of the position now."""
        return Checkpoint(
            topic=self.topic,
            partition=self.partition,
            offset=self.position,
            topic_id=self.topic_id,
            timestamp_ms=self.timestamp_ms,
            at_ms=at_ms,
            problem=self.problem,
            detail=self.detail,
            accepted_gap=self.accepted_gap,
            records=self.records,
            bytes=self.bytes,
            dropped=self.dropped,
            quarantined=self.quarantined,
            leader_epoch=self.leader_epoch,
            position_epoch=self.position_epoch,
            record_end=self.record_end if self.position_epoch >= 0 else -1,
            epoch_of_leader=self.epoch_of_leader and self.position_epoch >= 0,
            start=self.start,
            target=self.target.claim(),
            target_loss=self.target_loss,
            left_out=self.left_out,
            ranged=self.ranged,
            extra=self.extra,
        )

    def stats(self) -> PartitionStats:
        """What status and metrics show of this partition."""
        state: PartitionStateName = "replicating"
        if self.problem:
            state = "stopped"
        elif self.health.failure is not None:
            state = "failed"
        elif self.position < 0:
            state = "waiting"
        return PartitionStats(
            topic=self.topic,
            partition=self.partition,
            target_topic=self.target_topic,
            state=state,
            position=self.committed,
            source_end=max(self.source_end, self.position),
            timestamp_ms=self.timestamp_ms,
            records=self.records - self.reported_records,
            bytes=self.bytes - self.reported_bytes,
            problem=self.problem,
            detail=self.detail,
            failure=None if self.problem else self.health.failure,
        )


PartitionTable = dict[str, dict[int, PartitionState]]


def partition_table(states: Sequence[PartitionState]) -> PartitionTable:
    """Two plain dictionaries: cheaper per record than one keyed by a tuple."""
    table: PartitionTable = {}
    for state in states:
        table.setdefault(state.topic, {})[state.partition] = state
    return table
