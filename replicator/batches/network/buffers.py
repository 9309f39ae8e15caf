"""Buffers that responses are received into, used again once nobody looks into them."""

from collections import deque

_SMALL_BYTES = 64 * 1024
_UNIT_BYTES = 256 * 1024
_KEPT_BYTES = 32 * 1024 * 1024


class Buffer:
    """Bytes of one response; a reader that keeps a slice of it holds it."""

    __slots__ = ("_pool", "_users", "data")

    def __init__(self, data: bytearray, pool: "BufferPool | None") -> None:
        self.data = data
        self._pool = pool
        self._users = 1

    def hold(self) -> None:
        """One more user."""
        self._users += 1

    def release(self) -> None:
        """One user less; after the last one the bytes may change."""
        self._users -= 1
        if not self._users and self._pool is not None:
            self._pool.give_back(self.data)


class BufferPool:
    """Large buffers of one session; a new one costs the kernel's zeroing of every page."""

    def __init__(self) -> None:
        self._free: deque[bytearray] = deque()
        self._free_bytes = 0

    def take(self, size: int) -> Buffer:
        """A buffer of at least so many bytes."""
        if size <= _SMALL_BYTES:
            return Buffer(bytearray(size), None)
        for _ in range(len(self._free)):
            data = self._free.popleft()
            if size <= len(data):
                self._free_bytes -= len(data)
                return Buffer(data, self)
            self._free.append(data)
        return Buffer(bytearray(-(-size // _UNIT_BYTES) * _UNIT_BYTES), self)

    def give_back(self, data: bytearray) -> None:
        """Keeps it for the next response, unless enough are kept."""
        if self._free_bytes + len(data) <= _KEPT_BYTES:
            self._free.append(data)
            self._free_bytes += len(data)
