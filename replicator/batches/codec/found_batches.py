"""The batches of one partition in a fetch's answer, and what is to become of each. Pure.

A fetch may end inside a batch, may begin with a batch that starts before the asked offset, and holds
control batches and, as a list beside it, what the source aborted. Positions go on over all of them.
"""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from replicator.batches.codec.header import (
    CODEC_MASK,
    CONTROL,
    DELETE_HORIZON,
    HEADER,
    HEADER_BYTES,
    LENGTH_FROM,
    LOG_APPEND,
    MAGIC,
    TRANSACTIONAL,
    checksum_holds,
)
from replicator.errors import SourceDamagedError, StoredFormatError
from replicator.wire.records.varint import read_varint

Repack = Literal[
    "", "thinned", "append time", "delete horizon", "old format", "starts before the position"
]
"""Why a batch cannot pass as it is, so that its records are packed anew; empty when it can."""

Skip = Literal["", "control", "aborted", "empty"]
"""Why nothing of a batch is copied."""

_MOST_CODEC = 4
_MAGIC_AT = 16
_CHECKSUM_AT, _OLD_CHECKSUM_AT = 17, 12
_LEAST_OLD_BYTES = LENGTH_FROM + 14
_ABORT = 0
_OLD_START = struct.Struct(">qi")
_CONTROL_KEY = struct.Struct(">hh")


class DamagedBatchError(StoredFormatError):
    """A batch is not what its writer wrote; ``offset`` is where reading stopped."""

    retriable = True  # another replica may hold it undamaged
    partition_scoped = True
    code = SourceDamagedError.code

    def __init__(self, message: str, *, place: str, offset: int) -> None:
        self.offset = offset
        super().__init__(
            f"{place} at offset {offset}: {message}",
            subject=place,
            remedy="Nothing behind it is copied. Look at the source broker's disk and log; a restored "
            "replica or another leader may hold the batch whole.",
        )


@dataclass(slots=True)
class FoundBatch:
    """One batch, with the offsets it takes up on the source.

    ``data`` is the whole batch. ``count`` is the number of its records (0 for an old format, where
    nobody has counted yet). Times are in milliseconds.
    """

    data: memoryview
    base_offset: int
    last_offset: int
    leader_epoch: int
    count: int
    base_timestamp: int
    max_timestamp: int
    attributes: int = 0
    producer_id: int = -1
    repack: Repack = ""
    skip: Skip = ""

    @property
    def ends_aborted(self) -> bool:
        """Of a control batch: whether it is the marker that aborts what its producer wrote before."""
        return _ends_aborted(self.data)

    @property
    def content_checksum(self) -> int:
        """The checksum that its writer gave it: over everything but its place in the log."""
        at = _CHECKSUM_AT if self.data[_MAGIC_AT] == MAGIC else _OLD_CHECKSUM_AT
        return int.from_bytes(self.data[at : at + 4], "big")


def found_batches(
    data: memoryview,
    *,
    position: int,
    aborted: Sequence[tuple[int, int]] = (),
    place: str,
) -> Iterator[FoundBatch]:
    """The whole batches from ``position`` on, in order; what is cut off at the end is left out.

    Args:
        data: the record set of one partition.
        position: the asked offset; batches that end before it are passed over.
        aborted: producer ids and first offsets of what the source aborted, from the answer.
        place: topic and partition, for errors.

    Raises:
        DamagedBatchError: what stands there is no batch, or its checksum is wrong.
    """
    transactions = _Transactions(aborted)
    at, size, next_offset = 0, len(data), 0
    while size - at > _MAGIC_AT:
        if (magic := data[at + _MAGIC_AT]) != MAGIC:
            found, at = _old_format(data, at, magic, place=place)
        elif size - at >= HEADER_BYTES:
            found, at = _found(data, at, next_offset, position, place=place)
        else:
            return
        if found is None:
            return
        next_offset = found.last_offset + 1
        if found.last_offset < position:
            continue
        if magic == MAGIC:
            _check(found, position, place=place)
            transactions.judge(found)
        yield found


def _found(
    data: memoryview, at: int, next_offset: int, position: int, *, place: str
) -> tuple[FoundBatch | None, int]:
    """The batch that stands there and where the next one does; None where it is cut off."""
    (base, length, epoch, _, _, attributes, last_delta, first_ms, most_ms, producer, _, _, count) = (
        HEADER.unpack_from(data, at)
    )  # fmt: skip
    end = at + LENGTH_FROM + length
    if length < HEADER_BYTES - LENGTH_FROM or last_delta < 0 or count < 0 or base < next_offset:
        raise DamagedBatchError(
            "a record batch has an impossible header", place=place, offset=max(base, position)
        )
    if end > len(data):
        return None, at
    found = FoundBatch(
        data[at:end], base, base + last_delta, epoch, count, first_ms, most_ms, attributes, producer
    )
    if last_delta + 1 != count or attributes & (LOG_APPEND | DELETE_HORIZON) or base < position:
        found.repack = _why_repacked(base, position, attributes)
    return found, end


def _check(found: FoundBatch, position: int, *, place: str) -> None:
    if not checksum_holds(found.data):
        wrong = "a record batch has a wrong checksum"
    elif found.attributes & CODEC_MASK > _MOST_CODEC:
        wrong = f"a record batch has the unknown codec {found.attributes & CODEC_MASK}"
    else:
        return
    raise DamagedBatchError(wrong, place=place, offset=max(found.base_offset, position))


class _Transactions:
    """What the source aborted, met in the order of the log."""

    __slots__ = ("_aborting", "_pending")

    def __init__(self, aborted: Sequence[tuple[int, int]]) -> None:
        self._pending = sorted(aborted, key=lambda each: each[1], reverse=True)
        self._aborting: set[int] = set()

    def judge(self, found: FoundBatch) -> None:
        """Says of a batch whether nothing of it is copied, and why."""
        while self._pending and self._pending[-1][1] <= found.last_offset:
            self._aborting.add(self._pending.pop()[0])
        if found.attributes & CONTROL:
            found.skip = "control"
            if found.producer_id in self._aborting and found.ends_aborted:
                self._aborting.discard(found.producer_id)
        elif found.attributes & TRANSACTIONAL and found.producer_id in self._aborting:
            found.skip = "aborted"
        elif found.count == 0:
            found.skip = "empty"


def _why_repacked(base: int, position: int, attributes: int) -> Repack:
    if base < position:
        return "starts before the position"
    if attributes & LOG_APPEND:
        return "append time"
    if attributes & DELETE_HORIZON:
        return "delete horizon"
    return "thinned"


def _old_format(
    data: memoryview, at: int, magic: int, *, place: str
) -> tuple[FoundBatch | None, int]:
    """A message of format 0 or 1: its offset is that of its last record."""
    base, length = _OLD_START.unpack_from(data, at)
    if magic not in {0, 1}:
        raise DamagedBatchError(
            f"a record batch has the unknown format {magic}", place=place, offset=base
        )
    end = at + LENGTH_FROM + length
    if end < at + _LEAST_OLD_BYTES or base < 0:
        raise DamagedBatchError("a message has an impossible header", place=place, offset=base)
    if end > len(data):
        return None, at
    found = FoundBatch(data[at:end], base, base, -1, 0, -1, -1, repack="old format")
    return found, end


def _ends_aborted(batch: memoryview) -> bool:
    """Whether a control batch is the marker that aborts."""
    body = bytes(batch[HEADER_BYTES:])
    try:
        _, at = read_varint(body, 0)
        _, at = read_varint(body, at + 1)
        _, at = read_varint(body, at)
        size, at = read_varint(body, at)
        if size < _CONTROL_KEY.size:
            return False
        kind: int = _CONTROL_KEY.unpack_from(body, at)[1]
    except (StoredFormatError, struct.error):
        return False
    return kind == _ABORT
