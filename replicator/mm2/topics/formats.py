"""MirrorMaker 2's records byte for byte: heartbeats, checkpoints, offset syncs. Pure.

Kafka's own schema types, big endian: a text is an INT16 length and UTF-8, numbers are INT16, INT32
and INT64. Values begin with an INT16 version, keys and offset syncs have none. Source: the classes
``Heartbeat``, ``Checkpoint`` and ``OffsetSync`` of Apache Kafka's connect-mirror, and KIP-382.
"""

import struct
from dataclasses import dataclass

from replicator.errors import InputError, StoredFormatError

VERSION = 0
MAX_TEXT_BYTES = 32_767

_SHORT, _INT, _LONG = struct.Struct(">h"), struct.Struct(">i"), struct.Struct(">q")


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """What says that ``source -> target`` is alive; ``at_ms`` is when it was emitted."""

    source: str
    target: str
    at_ms: int

    def key(self) -> bytes:
        """Source and target alias."""
        return _text(self.source) + _text(self.target)

    def value(self) -> bytes:
        """Version and time."""
        return _SHORT.pack(VERSION) + _LONG.pack(self.at_ms)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Where a group stands: ``upstream`` on the source is ``downstream`` on the target.

    ``topic`` is the name on the target; ``metadata`` is what the group committed with its position.
    """

    group: str
    topic: str
    partition: int
    upstream: int
    downstream: int
    metadata: str = ""

    def key(self) -> bytes:
        """Group, topic on the target, partition."""
        return _text(self.group) + _text(self.topic) + _INT.pack(self.partition)

    def value(self) -> bytes:
        """Version, both positions, metadata."""
        positions = _LONG.pack(self.upstream) + _LONG.pack(self.downstream)
        return _SHORT.pack(VERSION) + positions + _text(self.metadata)


@dataclass(frozen=True, slots=True)
class OffsetSync:
    """One record on both sides; ``topic`` is the name on the source."""

    topic: str
    partition: int
    upstream: int
    downstream: int

    def key(self) -> bytes:
        """Topic on the source, partition."""
        return _text(self.topic) + _INT.pack(self.partition)

    def value(self) -> bytes:
        """Both offsets; the one value without a version."""
        return _LONG.pack(self.upstream) + _LONG.pack(self.downstream)


def decode_heartbeat(key: bytes, value: bytes) -> Heartbeat:
    """Reads a heartbeat.

    Raises:
        StoredFormatError: the bytes are no heartbeat of version 0.
    """
    of_key, of_value = _Reader(key, "heartbeat"), _Reader(value, "heartbeat")
    of_value.version()
    found = Heartbeat(of_key.text(), of_key.text(), of_value.long())
    of_key.end()
    of_value.end()
    return found


def decode_checkpoint(key: bytes, value: bytes) -> Checkpoint:
    """Reads a checkpoint.

    Raises:
        StoredFormatError: the bytes are no checkpoint of version 0.
    """
    of_key, of_value = _Reader(key, "checkpoint"), _Reader(value, "checkpoint")
    of_value.version()
    found = Checkpoint(
        group=of_key.text(),
        topic=of_key.text(),
        partition=of_key.whole(),
        upstream=of_value.long(),
        downstream=of_value.long(),
        metadata=of_value.text(),
    )
    of_key.end()
    of_value.end()
    return found


def decode_offset_sync(key: bytes, value: bytes) -> OffsetSync:
    """Reads an offset sync.

    Raises:
        StoredFormatError: the bytes are no offset sync.
    """
    of_key, of_value = _Reader(key, "offset sync"), _Reader(value, "offset sync")
    found = OffsetSync(of_key.text(), of_key.whole(), of_value.long(), of_value.long())
    of_key.end()
    of_value.end()
    return found


class _Reader:
    """Takes fields off the front of some bytes."""

    def __init__(self, data: bytes, what: str) -> None:
        self._data = data
        self._at = 0
        self._what = what

    def version(self) -> None:
        found = self._number(_SHORT)
        if found != VERSION:
            raise self._wrong(f"it has version {found}, this release reads {VERSION}")

    def whole(self) -> int:
        return self._number(_INT)

    def long(self) -> int:
        return self._number(_LONG)

    def text(self) -> str:
        length = self._number(_SHORT)
        if length < 0:
            raise self._wrong("a text is missing")
        try:
            return self._take(length).decode()
        except UnicodeDecodeError as error:
            raise self._wrong("a text is not UTF-8") from error

    def end(self) -> None:
        if self._at != len(self._data):
            raise self._wrong(f"{len(self._data) - self._at} bytes are left over")

    def _number(self, form: struct.Struct) -> int:
        (number,) = form.unpack(self._take(form.size))
        return int(number)

    def _take(self, count: int) -> bytes:
        taken = self._data[self._at : self._at + count]
        if len(taken) < count:
            raise self._wrong("it ends too early")
        self._at += count
        return taken

    def _wrong(self, why: str) -> StoredFormatError:
        return StoredFormatError(
            f"this is no {self._what} of MirrorMaker 2: {why}",
            remedy="Something else wrote into one of MirrorMaker 2's topics; find out what.",
        )


def _text(text: str) -> bytes:
    data = text.encode()
    if len(data) > MAX_TEXT_BYTES:
        raise InputError(
            f"'{text[:32]}…' has {len(data)} bytes, MirrorMaker 2's format holds {MAX_TEXT_BYTES}",
            remedy="Leave it out of the links with mm2Compatibility, or shorten it.",
        )
    return _SHORT.pack(len(data)) + data
