"""Several small batches of one partition as one: brokers take one batch per partition and request.

Only what stands around the records changes: keys, values, headers and times stay byte for byte, and the
codec stays. It costs one to two microseconds a record, a request for each batch costs more.
"""

from collections.abc import Sequence

from replicator.batches.codec.header import (
    CODEC_MASK,
    HEADER,
    HEADER_BYTES,
    LENGTH_FROM,
    MAGIC,
)
from replicator.errors import StoredFormatError
from replicator.wire.records.codecs import CODECS, compress, decompress
from replicator.wire.records.varint import append_varint, read_varint

_NOBODY = -1


def joined(batches: Sequence[memoryview]) -> bytearray:
    """One batch with all records of several of format 2 and the same codec, in order.

    Every offset of each has a record. Producer, offsets and checksum are to be claimed.

    Raises:
        StoredFormatError: records cannot be read.
    """
    heads = [HEADER.unpack_from(batch) for batch in batches]
    codec = CODECS[heads[0][5] & CODEC_MASK]
    base_ms: int = heads[0][7]
    body, at = bytearray(), 0
    for batch, head in zip(batches, heads, strict=True):
        section = decompress(codec, bytes(batch[HEADER_BYTES:]))
        _append(body, section, count=head[12], later_ms=head[7] - base_ms, at=at)
        at += head[12]
    packed = compress(codec, bytes(body)) if codec != "none" else body
    out = bytearray(HEADER_BYTES)
    HEADER.pack_into(
        out, 0,
        0, HEADER_BYTES - LENGTH_FROM + len(packed), _NOBODY, MAGIC, 0, CODECS.index(codec),
        at - 1, base_ms, max(head[8] for head in heads), _NOBODY, _NOBODY, _NOBODY, at,
    )  # fmt: skip
    return out + packed


def _append(body: bytearray, section: bytes, *, count: int, later_ms: int, at: int) -> None:
    """Copies records whose times begin ``later_ms`` after the new batch's, and numbers them from ``at`` on."""
    place = 0
    for number in range(at, at + count):
        size, start = read_varint(section, place)
        place = start + size
        if size < 1 or place > len(section):
            raise StoredFormatError("a record ends behind its batch")
        delta_ms, rest = read_varint(section, start + 1)
        _, rest = read_varint(section, rest)
        numbers = bytearray(section[start : start + 1])
        append_varint(numbers, delta_ms + later_ms)
        append_varint(numbers, number)
        append_varint(body, len(numbers) + place - rest)
        body += numbers
        body += section[rest:place]
    if place != len(section):
        raise StoredFormatError("a batch holds more than its records")
