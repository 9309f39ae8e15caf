"""Reading and writing the few field types of flexible requests and responses.

https://kafka.apache.org/protocol#protocol_types. Only what fetch and produce need.
"""

import struct

from replicator.errors import StoredFormatError

_I16, _I32, _I64 = struct.Struct(">h"), struct.Struct(">i"), struct.Struct(">q")
_MOST_UVARINT_BYTES = 5


class Answer:
    """A response, read from its start to its end.

    Every method raises StoredFormatError where the response is cut off, and moves on by what it read.
    """

    __slots__ = ("_at", "_data")

    def __init__(self, data: memoryview) -> None:
        self._data = data
        self._at = 0

    def int16(self) -> int:
        """A signed number of two bytes."""
        return self._number(_I16)

    def int32(self) -> int:
        """A signed number of four bytes."""
        return self._number(_I32)

    def int64(self) -> int:
        """A signed number of eight bytes."""
        return self._number(_I64)

    def uvarint(self) -> int:
        """An unsigned number, seven bits a byte."""
        value = shift = 0
        for at in range(self._at, min(self._at + _MOST_UVARINT_BYTES, len(self._data))):
            byte = self._data[at]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                self._at = at + 1
                return value
            shift += 7
        raise StoredFormatError("a response ends inside a number")

    def take(self, size: int) -> memoryview:
        """So many bytes, not copied."""
        end = self._at + size
        if size < 0 or end > len(self._data):
            raise StoredFormatError("a response is cut off")
        part = self._data[self._at : end]
        self._at = end
        return part

    def count(self) -> int:
        """The length of a compact array; -1 for null."""
        count = self.uvarint() - 1
        if count > len(self._data):
            raise StoredFormatError("a response has an impossible number of entries")
        return count

    def data(self) -> memoryview | None:
        """Compact nullable bytes, not copied."""
        size = self.uvarint() - 1
        return None if size < 0 else self.take(size)

    def text(self) -> str:
        """A compact nullable string; empty for null."""
        raw = self.data()
        return "" if raw is None else bytes(raw).decode(errors="replace")

    def tags(self) -> dict[int, memoryview]:
        """Tagged fields, not read further."""
        count = self.uvarint()
        if not count:
            return _NO_TAGS
        if count > len(self._data):
            raise StoredFormatError("a response has an impossible number of tagged fields")
        found: dict[int, memoryview] = {}
        for _ in range(count):
            tag = self.uvarint()
            found[tag] = self.take(self.uvarint())
        return found

    def _number(self, form: struct.Struct) -> int:
        end = self._at + form.size
        if end > len(self._data):
            raise StoredFormatError("a response is cut off")
        value: int = form.unpack_from(self._data, self._at)[0]
        self._at = end
        return value


_NO_TAGS: dict[int, memoryview] = {}


def uvarint(number: int) -> bytes:
    """An unsigned number, seven bits a byte."""
    out = bytearray()
    while number >= 0x80:
        out.append((number & 0x7F) | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def text(value: str | None) -> bytes:
    """A compact nullable string."""
    if value is None:
        return b"\x00"
    raw = value.encode()
    return uvarint(len(raw) + 1) + raw


def count(entries: int) -> bytes:
    """The length of a compact array."""
    return uvarint(entries + 1)


def request_header(api_key: int, version: int, correlation: int, client_id: str) -> bytes:
    """The header of a flexible request, without the frame's length."""
    raw = client_id.encode()
    return struct.pack(">hhih", api_key, version, correlation, len(raw)) + raw + b"\x00"
