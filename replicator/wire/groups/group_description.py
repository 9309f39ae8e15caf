"""What is told of a consumer group; apart from the question, which is slow to import."""

from dataclasses import dataclass

from replicator.identifiers import TopicPartition


@dataclass(frozen=True, slots=True)
class Member:
    """One member; ``instance_id`` only where membership is static."""

    id: str
    client_id: str
    host: str
    instance_id: str | None
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """A group; ``state`` is the cluster's word in capitals: STABLE, EMPTY, DEAD, ...

    A group that never existed is DEAD without members: that is how Kafka answers. ``protocol`` is CLASSIC or
    CONSUMER (KIP-848, whose members are not told); ``active`` holds for both.
    """

    group: str
    state: str
    protocol: str
    members: tuple[Member, ...]

    @property
    def active(self) -> bool:
        """Whether anybody is in it, so that its positions are its own."""
        return bool(self.members) or self.state not in {"EMPTY", "DEAD"}


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """Where a group stands in one partition."""

    offset: int
    metadata: str
    leader_epoch: int | None
