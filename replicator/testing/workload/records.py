"""Records that workloads write: seeded, varied, and each with an id of its own; pure."""

import random
from dataclasses import dataclass

from replicator.testing.checker.history import ID_HEADER, digest

_SEPARATOR = b"|"
_HEADER_VALUES: tuple[bytes | None, ...] = (None, b"", b"\x00\xff", b"plain")


@dataclass(frozen=True, slots=True)
class RecordStyle:
    """What the records of a workload look like.

    Attributes:
        value_bytes: size of values, at least that of the id.
        key_count: how many different keys; 0 is none at all.
        keyless_ratio: share of records without a key (where there are keys).
        tombstone_ratio: share with a key and a null value.
        header_ratio: share with headers, among them repeated names, null and empty values.
    """

    value_bytes: int = 100
    key_count: int = 50
    keyless_ratio: float = 0.1
    tombstone_ratio: float = 0.05
    header_ratio: float = 0.5


@dataclass(frozen=True, slots=True)
class NewRecord:
    """A record to be written."""

    id: str
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]

    def client_headers(self) -> "list[tuple[str, str | bytes | None]]":
        """The headers in the wider type the client asks for."""
        return [(name, value) for name, value in self.headers]


def new_record(draw: random.Random, *, id_: str, style: RecordStyle) -> NewRecord:
    """Makes the next record of a seeded sequence.

    The id is the beginning of the value; a tombstone has no value and carries it in a header.
    """
    key = None
    if style.key_count and draw.random() >= style.keyless_ratio:
        key = b"key-%d" % draw.randrange(style.key_count)
    headers: list[tuple[str, bytes | None]] = []
    if draw.random() < style.header_ratio:
        names = draw.choices(("trace", "kind", "é"), k=draw.randrange(1, 4))
        headers = [(name, draw.choice(_HEADER_VALUES)) for name in names]
    if key is not None and draw.random() < style.tombstone_ratio:
        return NewRecord(id_, key, None, [*headers, (ID_HEADER, id_.encode())])
    front = id_.encode() + _SEPARATOR
    filler = draw.randbytes(max(0, style.value_bytes - len(front)))
    return NewRecord(id_, key, front + filler, headers)


def record_id(value: bytes | None, headers: list[tuple[str, bytes | None]]) -> str:
    """The id a record carries; a record of another writer is identified by its content."""
    for name, text in headers:
        if name == ID_HEADER and text is not None:
            return text.decode(errors="replace")
    front, separator, _ = (value or b"").partition(_SEPARATOR)
    if separator:
        return front.decode(errors="replace")
    return f"unmarked-{digest(value)}"
