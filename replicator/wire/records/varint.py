"""Variable-length signed numbers of the record format: zigzag, seven bits a byte, low bits first.

https://protobuf.dev/programming-guides/encoding/#varints
"""

from replicator.errors import StoredFormatError

MOST_BYTES = 10


def append_varint(out: bytearray, number: int) -> None:
    """Appends a number of up to 64 bits."""
    value = (number << 1) ^ (number >> 63)
    while value & ~0x7F:
        out.append((value & 0x7F) | 0x80)
        value >>= 7
    out.append(value)


def read_varint(data: bytes, position: int) -> tuple[int, int]:
    """Reads a number; returns it with the position behind it.

    Raises:
        StoredFormatError: the data ends inside it, or it is longer than 64 bits.
    """
    value = shift = 0
    for place in range(position, min(position + MOST_BYTES, len(data))):
        byte = data[place]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), place + 1
        shift += 7
    raise StoredFormatError("a record ends inside a number")
