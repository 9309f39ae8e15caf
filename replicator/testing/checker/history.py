"""What happened, as facts: the format that workloads record and the checker judges.

A history is a sequence of events, one JSON object per line in a file. Every record a workload
writes carries an id that no other record has, so that every copy of it can be identified.
A write is recorded twice, when it is sent and when its outcome is known; one whose second line is
missing (the writer was killed) has an unknown outcome, which is the truth.
"""

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import orjson

from replicator.errors import StoredFormatError
from replicator.identifiers import HOPS_HEADER

VERSION = 1
FINAL = "final"
ID_HEADER = "history-id"
Outcome = Literal["ok", "fail", "unknown"]
Headers = Sequence[tuple[str, bytes | None]]


class Sent(NamedTuple):
    """A record was handed to a producer."""

    id: str
    cluster: str
    topic: str
    partition: int | None
    key: str | None  # digests, see ``digest``; None is a null key or a tombstone
    value: str | None
    headers: str
    timestamp_ms: int
    transaction: str | None
    epoch: int | None  # role epoch the writer believed in, where it knows one
    at: float


class Completed(NamedTuple):
    """The outcome of a sent record; ``unknown`` when it may have been written."""

    id: str
    outcome: Outcome
    partition: int | None
    offset: int | None
    at: float


class TransactionEnded(NamedTuple):
    """The outcome of a producer's transaction: ``ok`` committed, ``fail`` aborted."""

    transaction: str
    outcome: Outcome


class Flow(NamedTuple):
    """Copying from one cluster to another is expected; ``relay``: also of records copied there."""

    source: str
    target: str
    relay: bool


class Scanned(NamedTuple):
    """A partition was read from its start to its end (``read_committed``)."""

    view: str
    cluster: str
    topic: str
    partition: int
    start: int
    end: int


class Seen(NamedTuple):
    """A record found by a scan; views other than ``final`` are looks at the running system."""

    view: str
    cluster: str
    topic: str
    partition: int
    offset: int
    id: str
    key: str | None
    value: str | None
    headers: str
    timestamp_ms: int
    hops: str  # the hop header as stored, empty without one


class Delivered(NamedTuple):
    """A consumer group was given a record; ``at`` is 0 where the time was not noted."""

    group: str
    cluster: str
    topic: str
    partition: int
    offset: int
    at: float = 0.0


class Polled(NamedTuple):
    """A reader that is in no group was given a record; ``poll`` counts its calls.

    ``transaction`` is the one in which its application read the record, and then wrote: what it writes
    may follow from what it read.
    """

    reader: str
    poll: int
    cluster: str
    topic: str
    partition: int
    offset: int
    id: str
    transaction: str | None = None


class Committed(NamedTuple):
    """A consumer group committed a position (the next offset to read)."""

    group: str
    cluster: str
    topic: str
    partition: int
    offset: int


class GroupStarted(NamedTuple):
    """A group begins at the start of its topics, so that everything is due to it."""

    group: str


class Role(NamedTuple):
    """A role record was read on a cluster."""

    link: str
    seen_on: str
    epoch: int
    active: str
    topics: tuple[str, ...]  # the link's topics; empty is all
    at: float


class Salvaged(NamedTuple):
    """A record of an unreplicated tail was put on the new active side on purpose."""

    id: str


class Promised(NamedTuple):
    """What a command printed before the operator confirmed.

    ``subject`` is a link, for ``reread-records`` a group; ``kind`` is one of ``rpo-records``,
    ``rpo-seconds``, ``rto-seconds``, ``reread-records``.
    """

    subject: str
    kind: str
    value: float


class Measured(NamedTuple):
    """What it was in the end; same words as ``Promised``."""

    subject: str
    kind: str
    value: float


Event = (
    Sent
    | Completed
    | TransactionEnded
    | Flow
    | Scanned
    | Seen
    | Delivered
    | Polled
    | Committed
    | GroupStarted
    | Role
    | Salvaged
    | Promised
    | Measured
)
_KINDS: dict[str, type[Event]] = {
    "sent": Sent,
    "completed": Completed,
    "transaction": TransactionEnded,
    "flow": Flow,
    "scanned": Scanned,
    "seen": Seen,
    "delivered": Delivered,
    "polled": Polled,
    "committed": Committed,
    "group": GroupStarted,
    "role": Role,
    "salvaged": Salvaged,
    "promised": Promised,
    "measured": Measured,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}


def digest(data: bytes | None) -> str | None:
    """Short fingerprint of a key or value; ``None`` stays ``None``, empty does not become it."""
    return None if data is None else hashlib.blake2b(data, digest_size=8).hexdigest()


def digest_headers(headers: Headers | None) -> str:
    """Fingerprint of headers in order, less the one replication adds; empty without any."""
    own = [(name, value) for name, value in headers or () if name != HOPS_HEADER]
    if not own:
        return ""
    text = b"\0".join(b"%b=%b" % (name.encode(), _visible(value)) for name, value in own)
    return hashlib.blake2b(text, digest_size=8).hexdigest()


def _visible(value: bytes | None) -> bytes:
    return b"null" if value is None else b"%d:%b" % (len(value), value)


def header_line() -> bytes:
    """First line of a file."""
    return orjson.dumps({"e": "history", "v": VERSION}) + b"\n"


def encode(event: Event) -> bytes:
    """One line, with its end."""
    return orjson.dumps({"e": _NAMES[type(event)], **event._asdict()}) + b"\n"


def decode(line: bytes) -> Event:
    """Reads one line.

    Raises:
        StoredFormatError: it is no event this version knows.
    """
    try:
        fields: dict[str, Any] = orjson.loads(line)
        kind = _KINDS[fields.pop("e")]
        if kind is Role:
            fields["topics"] = tuple(fields["topics"])
        return kind(**fields)
    except (ValueError, KeyError, TypeError) as error:
        raise StoredFormatError(
            f"no event of a history: {line[:200]!r}", subject="history"
        ) from error


def read_events(path: Path) -> Iterator[Event]:
    """Reads a history file; a last line cut short by the writer's death is left out.

    Raises:
        StoredFormatError: it is no history, or one of another version.
    """
    with path.open("rb") as lines:
        first = lines.readline()
        if first != header_line():
            raise StoredFormatError(
                f"the file does not begin as a history of version {VERSION}", subject=str(path)
            )
        for line in lines:
            if line.endswith(b"\n"):
                yield decode(line)
