"""What ``status`` is made from: one pair of clusters as it was read, frozen."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from replicator.control.store.state import EMPTY, ControlState
from replicator.control.store.worker_record import fresh_workers
from replicator.errors import ReplicatorError
from replicator.formats.checkpoint import Checkpoint
from replicator.identifiers import TopicPartition, is_stream
from replicator.problem import Problem
from replicator.topology.plan import FlowPlan

if TYPE_CHECKING:
    from replicator.wire.requests.open_transactions import OpenTransaction


@dataclass(frozen=True, slots=True)
class GroupMember:
    """One member of the workers' group and the lanes it owns."""

    id: str
    lanes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PairFacts:
    """Everything read about one pair; what could not be read is empty and has a problem.

    Attributes:
        now_ms: when it was read.
        applied: whether the target has a control topic that speaks of this pair.
        control: the target's control topic.
        checkpoints: by source topic and partition.
        source_starts: oldest source offsets that still exist.
        source_ends: next source offsets that can be read (last stable).
        source_highs: where the source logs end, records behind open transactions included.
        source_errors: why the end of a partition is not known, though the source answers.
        open_transactions: what holds up the partitions in which these differ, as far as it was found.
        target_ends: by target topic and partition.
        oldest_waiting_ms: timestamp of the first record not copied yet, where there is one.
        members: of the workers' group on the target.
        source_problem: why the source could not be read.
        target_problem: why the target could not be read.
    """

    now_ms: int
    applied: bool = True
    control: ControlState = EMPTY
    checkpoints: Mapping[TopicPartition, Checkpoint] = field(default_factory=dict)
    source_starts: Mapping[TopicPartition, int] = field(default_factory=dict)
    source_ends: Mapping[TopicPartition, int] = field(default_factory=dict)
    source_highs: Mapping[TopicPartition, int] = field(default_factory=dict)
    source_errors: Mapping[TopicPartition, ReplicatorError] = field(default_factory=dict)
    open_transactions: "Mapping[TopicPartition, OpenTransaction]" = field(default_factory=dict)
    target_ends: Mapping[TopicPartition, int] = field(default_factory=dict)
    oldest_waiting_ms: Mapping[TopicPartition, int] = field(default_factory=dict)
    members: tuple[GroupMember, ...] = ()
    source_problem: Problem | None = None
    target_problem: Problem | None = None

    def failing(self, source: str, link: str) -> Mapping[str, Problem]:
        """What workers said lately of partitions that do not move, by ``topic/partition``."""
        return {
            part.subject: Problem(part.code, part.subject, part.detail, part.remedy)
            for worker in fresh_workers(self.control, source, now_ms=self.now_ms)
            for rate in worker.flows
            if rate.link == link
            for part in rate.problems
        }

    def streams(self, flow: FlowPlan) -> bool:
        """Whether a stream of Spark said lately that it runs the flow."""
        return any(
            rate.link == flow.link
            for worker in fresh_workers(self.control, flow.source, now_ms=self.now_ms)
            if is_stream(worker.id)
            for rate in worker.flows
        )
