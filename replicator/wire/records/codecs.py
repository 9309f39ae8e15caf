"""Compression of record batches: the five codecs of the protocol, in both directions.

https://kafka.apache.org/documentation/#recordbatch (attributes, bits 0 to 2). Snappy comes in two
forms: raw, and with the framing of the xerial library, which Java clients write.
"""

import struct
import zlib
from typing import Literal

import cramjam

from replicator.errors import StoredFormatError

Codec = Literal["none", "gzip", "snappy", "lz4", "zstd"]
CODECS: tuple[Codec, ...] = ("none", "gzip", "snappy", "lz4", "zstd")
"""In the order of their numbers on the wire."""

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = struct.Struct(">8sii")
_XERIAL_BLOCK_BYTES = 32 * 1024
_LZ4_HEADER = bytes.fromhex("04224d18604082")  # version 1, independent blocks, no checksums
_LZ4_BLOCK_BYTES = 64 * 1024
_LZ4_SIZE, _LZ4_PLAIN = struct.Struct("<I"), 0x8000_0000
_SNAPPY_MOST_EXPANSION = 64
_GZIP_WINDOW = 16 + zlib.MAX_WBITS


def compress(codec: Codec, data: bytes) -> bytes:
    """Compresses the records section of a batch the way Java clients do."""
    if codec == "none":
        return data
    if codec == "gzip":
        packer = zlib.compressobj(wbits=_GZIP_WINDOW)
        return packer.compress(data) + packer.flush()
    if codec == "snappy":
        return _xerial_pack(data)
    if codec == "lz4":
        return _lz4_pack(data)
    return bytes(cramjam.zstd.compress(data))


def decompress(codec: Codec, data: bytes) -> bytes:
    """Takes the compression off a records section.

    Raises:
        StoredFormatError: the bytes are not of this codec.
    """
    try:
        if codec == "none":
            return data
        if codec == "gzip":
            return zlib.decompress(data, wbits=_GZIP_WINDOW)
        if codec == "snappy":
            return _xerial_unpack(data) if data.startswith(_XERIAL_MAGIC) else _snappy(data)
        if codec == "lz4":
            return bytes(cramjam.lz4.decompress(data))
        return bytes(cramjam.zstd.decompress(data))
    except (
        zlib.error,
        cramjam.DecompressionError,
        struct.error,
        ValueError,
        OverflowError,
    ) as error:
        raise StoredFormatError(f"damaged {codec} data in a record batch: {error}") from error


def _lz4_pack(data: bytes) -> bytes:
    """A frame of independent blocks of 64 KB: brokers refuse blocks that depend on the one before (error -1)."""
    parts = [_LZ4_HEADER]
    for start in range(0, len(data), _LZ4_BLOCK_BYTES):
        block = data[start : start + _LZ4_BLOCK_BYTES]
        packed = bytes(cramjam.lz4.compress_block(block, store_size=False))
        if len(packed) < len(block):
            parts += (_LZ4_SIZE.pack(len(packed)), packed)
        else:
            parts += (_LZ4_SIZE.pack(len(block) | _LZ4_PLAIN), block)
    parts.append(_LZ4_SIZE.pack(0))
    return b"".join(parts)


def _xerial_pack(data: bytes) -> bytes:
    parts = [_XERIAL_HEADER.pack(_XERIAL_MAGIC, 1, 1)]
    for start in range(0, len(data), _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(data[start : start + _XERIAL_BLOCK_BYTES]))
        parts += (struct.pack(">i", len(block)), block)
    return b"".join(parts)


def _xerial_unpack(data: bytes) -> bytes:
    parts: list[bytes] = []
    position = _XERIAL_HEADER.size
    while position < len(data):
        (size,) = struct.unpack_from(">i", data, position)
        position += 4
        block = data[position : position + size]
        if size <= 0 or len(block) < size:
            raise ValueError("a block is cut off")
        parts.append(_snappy(block))
        position += size
    return b"".join(parts)


def _snappy(data: bytes) -> bytes:
    # The library allocates what the first bytes ask for; damaged ones may ask for gigabytes.
    if not data or cramjam.snappy.decompress_raw_len(data) > _SNAPPY_MOST_EXPANSION * len(data):
        raise ValueError("its stated length cannot be")
    return bytes(cramjam.snappy.decompress_raw(data))
