"""What the data plane needs of a consumed message, with the types a consumed record really has.

The client types every field as possibly absent, because errors travel as messages too. Engines look
at ``error()`` first; for a record none of these is absent.
"""

from collections.abc import Callable, Sequence
from typing import Protocol, cast

from replicator.dataplane.transport.delivery import OnDelivery
from replicator.kafka.clients.client import KafkaError, Message

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
        """Headers in order with duplicates; to be asked through ``read_headers`` only."""
        ...

    def set_headers(self, value: object, /) -> None:
        """Replaces what ``headers()`` gives."""
        ...

    def timestamp(self) -> tuple[int, int]:
        """Kind (0 none, 1 create time, 2 append time) and milliseconds."""
        ...

    def leader_epoch(self) -> int | None:
        """Leader epoch of the record's batch, where the broker gives it."""
        ...


UNREADABLE: Headers = []
"""The headers of a record whose headers the client cannot give: compared by identity."""

_GET_HEADERS = cast("Callable[[SourceMessage], Headers | None]", Message.headers)


def read_headers(messages: Sequence[SourceMessage]) -> list[Headers | None]:
    """The headers of each record; UNREADABLE where a name is not UTF-8.

    For such a name confluent-kafka 2.16.1 returns a list with a hole in it and an error at once, and
    returns the list again without the error when asked a second time: looking into it ends the
    process. Only a checked call notices, and CPython leaves that check out of a method call in a
    loop that has become hot; ``map`` always checks. So headers are read here, once, and what cannot
    be read is overwritten before anybody else can see it.
    """
    found: list[Headers | None] = []
    getting = map(_GET_HEADERS, messages)
    while True:
        try:
            found.extend(getting)  # keeps what came before an error
        except SystemError:
            messages[len(found)].set_headers(UNREADABLE)
            found.append(UNREADABLE)
        else:
            return found


class RecordSink(Protocol):
    """Where an engine writes: the client's producer, or a stand-in that watches it."""

    def produce(  # noqa: PLR0917  the client's own positional form; keywords cost time per record
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        partition: int,
        callback: OnDelivery | None,
        on_delivery: None,
        timestamp: int,
        headers: ProducedHeaders,
        /,
    ) -> None:
        """Queues one record; BufferError when the queue is full."""
        ...

    def poll(self, timeout: float, /) -> int:
        """Serves delivery reports for so many seconds at most."""
        ...
