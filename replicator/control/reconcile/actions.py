"""What the controller may do: frozen, with an identity and a one-line reason each.

Doing an action twice equals doing it once. ``identity`` is stable over runs, so that a refusal is
remembered for the same action only.
"""

from dataclasses import dataclass

from replicator.control.lanes.layout import LayoutDecision
from replicator.control.records.base import Record
from replicator.policy.copies.topic_config import ConfigChange


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """One line of ``plan``: what would change where, and why."""

    cluster: str
    kind: str
    subject: str
    from_value: str | int | None
    to_value: str | int | None
    reason: str

    def as_json(self) -> dict[str, object]:
        """The change under the field names of the contract."""
        return {
            "cluster": self.cluster,
            "kind": self.kind,
            "subject": self.subject,
            "from": self.from_value,
            "to": self.to_value,
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True)
class CreateTopic:
    """Create a target topic like its source."""

    cluster: str
    topic: str
    source_topic: str
    partitions: int
    replication_factor: int
    configs: tuple[tuple[str, str], ...]
    reason: str

    @property
    def identity(self) -> str:
        """The same for every attempt at this topic."""
        return f"create:{self.cluster}:{self.topic}"

    def changes(self) -> tuple[PlannedChange, ...]:
        """What ``plan`` says."""
        size = f"{self.partitions} partitions, {self.replication_factor} replicas"
        return (PlannedChange(self.cluster, "create-topic", self.topic, None, size, self.reason),)


@dataclass(frozen=True, slots=True)
class GrowTopic:
    """Give a target topic as many partitions as its source has."""

    cluster: str
    topic: str
    source_topic: str
    from_partitions: int
    to_partitions: int
    reason: str

    @property
    def identity(self) -> str:
        """The same for every attempt at this size."""
        return f"grow:{self.cluster}:{self.topic}:{self.to_partitions}"

    def changes(self) -> tuple[PlannedChange, ...]:
        """What ``plan`` says."""
        return (
            PlannedChange(
                self.cluster, "grow-topic", self.topic, self.from_partitions, self.to_partitions,
                self.reason,
            ),
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class AlterConfigs:
    """Change settings of a target topic, incrementally."""

    cluster: str
    topic: str
    source_topic: str
    settings: tuple[ConfigChange, ...]
    reason: str

    @property
    def identity(self) -> str:
        """The same for every attempt at these values."""
        values = ",".join(f"{item.name}={item.to_value}" for item in self.settings)
        return f"configs:{self.cluster}:{self.topic}:{values}"

    def changes(self) -> tuple[PlannedChange, ...]:
        """What ``plan`` says, one line per setting."""
        return tuple(
            PlannedChange(
                self.cluster, "alter-config", f"{self.topic}: {item.name}", item.from_value,
                item.to_value, item.reason,
            )
            for item in self.settings
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class DeleteTopic:
    """Delete a copy whose source is gone; only where deletions propagate."""

    cluster: str
    topic: str
    source_topic: str
    reason: str

    @property
    def identity(self) -> str:
        """The same for every attempt at this topic."""
        return f"delete:{self.cluster}:{self.topic}"

    def changes(self) -> tuple[PlannedChange, ...]:
        """What ``plan`` says."""
        return (PlannedChange(self.cluster, "delete-topic", self.topic, None, None, self.reason),)


@dataclass(frozen=True, slots=True)
class ArrangeLanes:
    """Store the lane layout, through a fenced change where lanes that exist are touched.

    ``links`` maps every wanted source topic to its link. ``erased`` are records of topics that move
    to another link; they end in the same transaction that moves the checkpoints.
    """

    cluster: str
    source: str
    decision: LayoutDecision
    links: tuple[tuple[str, str], ...]
    erased: tuple[Record, ...]
    from_lanes: int | None
    reason: str

    @property
    def identity(self) -> str:
        """The same for every attempt at this epoch."""
        return f"lanes:{self.cluster}:{self.source}:{self.decision.layout.epoch}"

    def changes(self) -> tuple[PlannedChange, ...]:
        """What ``plan`` says."""
        subject = f"{self.source}->{self.cluster}"
        total = self.decision.layout.total
        return (PlannedChange(self.cluster, "lanes", subject, self.from_lanes, total, self.reason),)


@dataclass(frozen=True, slots=True)
class WriteRecord:
    """Write a fact into the control topic. ``kind`` is empty when it only reports."""

    cluster: str
    record: Record
    reason: str
    kind: str = ""
    subject: str = ""

    @property
    def identity(self) -> str:
        """What the record is about."""
        return f"write:{self.record.KIND}:{self.record.identity}"

    def changes(self) -> tuple[PlannedChange, ...]:
        """What ``plan`` says; nothing for records that only report."""
        if not self.kind:
            return ()
        return (PlannedChange(self.cluster, self.kind, self.subject, None, None, self.reason),)


@dataclass(frozen=True, slots=True)
class EraseRecord:
    """Write a tombstone into the control topic."""

    cluster: str
    record: Record
    reason: str
    subject: str

    @property
    def identity(self) -> str:
        """What the record is about."""
        return f"erase:{self.record.KIND}:{self.record.identity}"

    def changes(self) -> tuple[PlannedChange, ...]:
        """What ``plan`` says."""
        return (
            PlannedChange(self.cluster, "stop-replicating", self.subject, None, None, self.reason),
        )


ClusterAction = CreateTopic | GrowTopic | AlterConfigs | DeleteTopic
Action = ClusterAction | ArrangeLanes | WriteRecord | EraseRecord
