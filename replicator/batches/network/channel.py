"""One connection to a broker that never blocks: frames go out in pieces and come in whole.

The pieces of a request are sent as they are (``sendmsg``), responses are received into the buffer they
stay in: between two sockets no byte of a record is copied, except what TLS forces.
"""

import socket
import ssl
from collections import deque
from collections.abc import Sequence
from itertools import islice

from replicator.batches.network.buffers import Buffer, BufferPool
from replicator.errors import UnreachableError

Piece = bytes | memoryview

MOST_FRAME_BYTES = 512 * 1024 * 1024
"""No response is longer; what says so is no broker."""

_PIECES_AT_ONCE = 64
_JOINED_BYTES = 64 * 1024
_WOULD_BLOCK = (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class Frame:
    """One response: ``body`` is what is behind its correlation id, a slice of ``buffer``."""

    __slots__ = ("body", "buffer", "correlation")

    def __init__(self, buffer: Buffer, size: int) -> None:
        self.buffer = buffer
        self.correlation = int.from_bytes(buffer.data[:4], "big", signed=True)
        self.body = memoryview(buffer.data)[4:size]


class Channel:
    """Takes over a connected, logged-in socket.

    Every method raises OSError or UnreachableError when the connection is of no use any more.

    Attributes:
        received_bytes: what has come in all, also of a response that is not whole yet.
    """

    def __init__(self, connected: socket.socket, *, pool: BufferPool, where: str) -> None:
        connected.setblocking(False)
        self.socket = connected
        self.where = where
        self.received_bytes = 0
        self._tls = isinstance(connected, ssl.SSLSocket)
        self._pool = pool
        self._out: deque[memoryview] = deque()
        self._length = bytearray(4)
        self._length_got = 0
        self._buffer: Buffer | None = None
        self._size = self._got = 0

    @property
    def wants_to_write(self) -> bool:
        """Whether something waits to be sent."""
        return bool(self._out)

    def send(self, pieces: Sequence[Piece]) -> None:
        """Queues a frame and sends what the socket takes now."""
        self._out.extend(memoryview(piece) for piece in pieces)
        self.flush()

    def flush(self) -> None:
        """Sends what the socket takes."""
        try:
            while self._out:
                sent = self._send_some()
                while sent:
                    first = self._out[0]
                    if sent < len(first):
                        self._out[0] = first[sent:]
                        break
                    sent -= len(first)
                    self._out.popleft()
        except _WOULD_BLOCK:
            return

    def receive(self) -> list[Frame]:
        """The responses that have come in whole."""
        frames: list[Frame] = []
        try:
            while True:
                frame = self._receive_some()
                if frame is not None:
                    frames.append(frame)
        except _WOULD_BLOCK:
            return frames

    def close(self) -> None:
        """Hangs up."""
        self.socket.close()

    def _send_some(self) -> int:
        if not self._tls:
            return self.socket.sendmsg(list(islice(self._out, _PIECES_AT_ONCE)))
        if len(self._out) > 1 and len(self._out[0]) < _JOINED_BYTES:
            # A TLS record for every few bytes between two batches would cost more than a copy.
            joined, size = [], 0
            while self._out and size + len(self._out[0]) <= 2 * _JOINED_BYTES:
                joined.append(self._out.popleft())
                size += len(joined[-1])
            self._out.appendleft(memoryview(b"".join(joined)) if joined else self._out.popleft())
        return self.socket.send(self._out[0])

    def _receive_some(self) -> Frame | None:
        if self._buffer is None:
            self._length_got += self._got_some(memoryview(self._length)[self._length_got :])
            if self._length_got < 4:
                return None
            self._size, self._got = int.from_bytes(self._length, "big"), 0
            if not 4 <= self._size <= MOST_FRAME_BYTES:
                raise UnreachableError(
                    f"{self.where} does not answer as a Kafka broker: a response of {self._size} bytes",
                    remedy="Check bootstrapServers and security.protocol.",
                )
            self._buffer = self._pool.take(self._size)
        self._got += self._got_some(memoryview(self._buffer.data)[self._got : self._size])
        if self._got < self._size:
            return None
        frame = Frame(self._buffer, self._size)
        self._buffer, self._length_got = None, 0
        return frame

    def _got_some(self, into: memoryview) -> int:
        got = self.socket.recv_into(into)
        if not got:
            raise UnreachableError(
                f"{self.where} hangs up on us",
                remedy="Check that the brokers run; a broker refuses what it cannot read.",
            )
        self.received_bytes += got
        return got
