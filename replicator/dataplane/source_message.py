"""What the data plane needs of a consumed message, with the types a consumed record really has.

The client types every field as possibly absent, because errors travel as messages too. Engines look
at ``error()`` first; for a record none of these is absent.
"""

from typing import Protocol

from replicator.kafka.client import KafkaError

Headers = list[tuple[str, bytes | None]]
ProducedHeaders = dict[str, str | bytes | None] | list[tuple[str, str | bytes | None]] | None


class SourceMessage(Protocol):
    """One consumed message; each method is one call into the client library."""

    def error(self) -> KafkaError | None:
        """None for a record."""
        ...

    def topic(self) -> str:
        """Source topic."""
        ...

    def partition(self) -> int:
        """Source partition."""
        ...

    def offset(self) -> int:
        """Source offset; for the end of a partition, the next one."""
        ...

    def key(self) -> bytes | None:
        """Key bytes; null and empty differ."""
        ...

    def value(self) -> bytes | None:
        """Value bytes; null and empty differ."""
        ...

    def headers(self) -> Headers | None:
        """Headers in order with duplicates; SystemError where a name is not UTF-8."""
        ...

    def timestamp(self) -> tuple[int, int]:
        """Kind (0 none, 1 create time, 2 append time) and milliseconds."""
        ...

    def leader_epoch(self) -> int | None:
        """Leader epoch of the record's batch, where the broker tells."""
        ...


class RecordSink(Protocol):
    """Where an engine writes: the client's producer, or a stand-in that watches it."""

    def produce(  # noqa: PLR0917  the client's own positional form; keywords cost time per record
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        partition: int,
        callback: None,
        on_delivery: None,
        timestamp: int,
        headers: ProducedHeaders,
        /,
    ) -> None:
        """Queues one record; BufferError when the queue is full."""
        ...
