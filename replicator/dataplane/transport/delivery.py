"""What the client reports of a produced record, and what became of records that an engine copied."""

from collections.abc import Callable
from dataclasses import dataclass, field

from replicator.kafka.clients.client import KafkaError, Message

OnDelivery = Callable[[KafkaError | None, Message], None]


@dataclass(slots=True)
class CopyOutcome:
    """What became of the records of one or more batches; counters, reused between commits."""

    read: int = 0
    copied: int = 0
    bytes: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    foreign_headers: int = 0
    headers_omitted: int = 0
    quarantined: int = 0
