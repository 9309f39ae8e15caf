"""What a lane asks of a session and its clients, whichever engine copies."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from replicator.dataplane.progress.index_notes import OpenIndex
from replicator.dataplane.progress.partition_state import PartitionState, PartitionTable
from replicator.dataplane.session.source_events import SourceEvents
from replicator.dataplane.takeover.start_position import StartDecision
from replicator.dataplane.takeover.takeover import OnFailure
from replicator.dataplane.transport.spec import LaneSpec
from replicator.formats.checkpoint import Checkpoint
from replicator.identifiers import TopicPartition
from replicator.kafka.clients.opened_with import OpenedWith
from replicator.kafka.logs.topic_lookup import OnWait
from replicator.policy.capacity.memory_shares import LaneMemory


class SessionUnit(Protocol):
    """What was copied since the last commit."""

    def begin(self) -> None:
        """Opens the unit, unless it is open."""
        ...

    def add(self, topic: str, key: bytes, value: bytes | None) -> None:
        """Writes a record of the replicator's own into partition 0 of a topic, with the open unit."""
        ...

    def commit(self) -> None:
        """Makes everything read so far durable, or raises."""
        ...

    def store_soon(self, state: PartitionState) -> None:
        """Has progress without records stored with the next commit."""
        ...

    def forget_index(self, state: PartitionState) -> None:
        """The source log of a partition is another one from here on."""
        ...


class LaneSession(Protocol):
    """From a finished take-over to the next stop or failure."""

    @property
    def table(self) -> PartitionTable:
        """The partitions of the lane; always the same object."""
        ...

    @property
    def events(self) -> SourceEvents:
        """Which partitions need a look at their source log."""
        ...

    @property
    def unit(self) -> SessionUnit:
        """The open unit."""
        ...

    def step(self) -> None:
        """Reads what is there, copies it, and commits when it is time."""
        ...

    def read_source_ends(self) -> None:
        """Brings what is known of the source's ends into the states."""
        ...


@dataclass(frozen=True, slots=True)
class UnseenProducer:
    """A producer id under which records were copied one by one, and when readers have seen it registered (monotonic)."""

    producer_id: int
    seen_at: float


class SessionClients(Protocol):
    """The connections of one session; see ``LaneClients`` and ``BatchClients``."""

    spec: LaneSpec
    record_by_record: bool
    needs_whole_answers: bool
    """Whether nothing of a broker's answer is copied before all of it is there, and its size cannot be changed."""
    memory: LaneMemory | None
    target_seconds: float
    """The round trip to the target; 0 where it is not known."""
    opened_with: OpenedWith

    @property
    def unseen(self) -> UnseenProducer | None:
        """Under which id no whole batch may be sent yet; known once the checkpoints were read."""
        ...

    @property
    def session(self) -> LaneSession:
        """The session that works with them."""
        ...

    def serves(self, spec: LaneSpec, /) -> bool:
        """Whether other work fits this session."""
        ...

    def connect_ahead(self) -> None:
        """Opens connections that the take-over needs; changes nothing anywhere.

        Raises:
            ReplicatorError: a cluster cannot be reached, or refuses us.
            KafkaException: the same, of the client library.
        """
        ...

    def fence_last_owner(self, stopping: Callable[[], bool]) -> bool:
        """Makes this the only writer of the lane; False when the lane had to stop meanwhile."""
        ...

    def read_checkpoints(
        self, open_index: OpenIndex | None, on_wait: OnWait
    ) -> dict[TopicPartition, Checkpoint]:
        """What the last owner stored; ``on_wait`` is told why, where that cannot be read yet."""
        ...

    def learn_leaders(self, topics: set[str]) -> None:
        """Finds out who leads the topics' partitions."""
        ...

    def read_from(self, states: Iterable[PartitionState]) -> None:
        """Reads on at each partition's position."""
        ...

    def stop_reading(self, states: Iterable[PartitionState]) -> None:
        """Reads these partitions no longer."""
        ...

    def replaced(self, error: Exception, /) -> bool:
        """Whether another owner took over."""
        ...

    def answers(self, side: str) -> bool:
        """Whether the cluster on that ``side`` answers now."""
        ...

    def arriving(self) -> Collection[TopicPartition]:
        """Partitions of which a part of an answer has come, and the rest takes long."""
        ...

    def require_brokers(self, read: int, /) -> None:
        """After each step, with the number of records read; raises where a client has lost all brokers."""
        ...

    def decide(
        self,
        spec: LaneSpec,
        states: set[PartitionState],
        stored: Mapping[tuple[str, int], Checkpoint],
        *,
        on_failure: OnFailure,
    ) -> dict[PartitionState, StartDecision]:
        """Asks the source about each partition."""
        ...

    def end_of(self, place: TopicPartition) -> int:
        """Where a log of the replicator's own on the target ends, shown by a write of these clients.

        Raises:
            KafkaException, ReplicatorError: nobody acknowledges it, or the session is over.
        """
        ...

    def stable_ends(self, keys: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Up to where committed records can be read at the source."""
        ...

    def show_end(self) -> None:
        """The lane has committed and ends; for what tells others of it. At most a second."""
        ...

    def close(self) -> None:
        """Closes without waiting for anything."""
        ...
