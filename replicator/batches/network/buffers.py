"""Buffers that responses are received into, used again once nobody looks into them."""

import mmap

Memory = bytearray | mmap.mmap

_SMALL_BYTES = 64 * 1024
_LEAST_BYTES = 256 * 1024
MOST_FREE_BYTES = 32 * 1024 * 1024
"""Bytes of buffers that one session keeps though nobody uses them."""


class Buffer:
    """Bytes of one response; a reader that keeps a slice of it holds it."""

    __slots__ = ("_pool", "_users", "data")

    def __init__(self, data: Memory, pool: "BufferPool | None") -> None:
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


class _Spare:
    """Buffers of one size that nobody uses; ``untouched`` of them were free at every moment since the last trim."""

    __slots__ = ("free", "untouched")

    def __init__(self) -> None:
        self.free: list[Memory] = []
        self.untouched = 0


class BufferPool:
    """Large buffers of one session; a new one costs the kernel's zeroing of every page.

    Their sizes are powers of two, so that one that is free nearly always fits; what of it is never written takes no
    memory. Each is a mapping of its own, since the heap keeps what is given back to it.
    """

    def __init__(self) -> None:
        self._spare: dict[int, _Spare] = {}
        self._free_bytes = 0

    @property
    def free_bytes(self) -> int:
        """Bytes of buffers that wait for a response."""
        return self._free_bytes

    def take(self, size: int) -> Buffer:
        """A buffer of at least so many bytes; the one that was given back last, whose pages are in a cache yet."""
        if size <= _SMALL_BYTES:
            return Buffer(bytearray(size), None)
        rounded = max(_LEAST_BYTES, 1 << (size - 1).bit_length())
        spare = self._spare.get(rounded)
        if spare is None or not spare.free:
            return Buffer(_mapped(rounded), self)
        data = spare.free.pop()
        spare.untouched = min(spare.untouched, len(spare.free))
        self._free_bytes -= rounded
        return Buffer(data, self)

    def give_back(self, data: Memory) -> None:
        """Keeps it for the next response, unless enough are kept."""
        size = len(data)
        if self._free_bytes + size <= MOST_FREE_BYTES:
            self._spare.setdefault(size, _Spare()).free.append(data)
            self._free_bytes += size

    def trim(self) -> None:
        """Lets go of what nobody needed since it was called last: a burst is over, or sizes have changed."""
        for size, spare in self._spare.items():
            del spare.free[: spare.untouched]
            self._free_bytes -= spare.untouched * size
            spare.untouched = len(spare.free)


def _mapped(size: int) -> Memory:
    return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
