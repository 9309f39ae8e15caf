"""One client connection through the fault proxy: bytes held back, lost or limited on their way."""

import asyncio
import contextlib
import random
import socket
from collections.abc import Callable
from dataclasses import dataclass

from replicator.errors import ReplicatorError
from replicator.testing.faults.network import abort, opened, serve

_CHUNK_BYTES = 65_536
_QUEUE_BYTES = 8 * 1024 * 1024  # what may be under way in one direction of one connection


@dataclass(frozen=True, slots=True)
class Faults:
    """What happens to bytes in one direction."""

    latency_seconds: float = 0.0
    jitter_seconds: float = 0.0
    bytes_per_second: float | None = None
    swallow: bool = False


class ProxyConnection:
    """One client connection and its counterpart to the broker."""

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None
        self._writers: list[asyncio.StreamWriter] = []
        self.lost_bytes = False

    def start(
        self,
        accepted: socket.socket,
        target_port: int,
        faults_of: Callable[[str], Faults],
        draw: random.Random,
        *,
        ended: Callable[[], None],
    ) -> None:
        """Pumps both ways until both sides have ended or one has failed; both are closed then."""

        async def work(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self._writers.append(writer)
            # The broker is down, or a side reset: the client sees a reset too. Python 3.11's suppress
            # does not look into the group that a task group raises.
            try:
                await self._run(reader, writer, target_port, faults_of, draw)
            except* OSError:
                pass

        def close(_task: object) -> None:
            self.abort()
            ended()

        self._task = serve(accepted, work, limit=_CHUNK_BYTES)
        self._task.add_done_callback(close)

    async def _run(
        self,
        theirs: asyncio.StreamReader,
        ours: asyncio.StreamWriter,
        target_port: int,
        faults_of: Callable[[str], Faults],
        draw: random.Random,
    ) -> None:
        if faults_of("to-broker").swallow and faults_of("to-client").swallow:
            # As if never accepted: the peer gets no answer until the network heals.
            self.lost_bytes = True
            await asyncio.Event().wait()
        reader, writer = await opened(
            asyncio.open_connection("127.0.0.1", target_port, limit=_CHUNK_BYTES)
        )
        self._writers.append(writer)
        async with asyncio.TaskGroup() as pumps:
            up = _Pump(self, theirs, writer, lambda: faults_of("to-broker"), draw)
            down = _Pump(self, reader, ours, lambda: faults_of("to-client"), draw)
            for pump in (up, down):
                pumps.create_task(pump.receive())
                pumps.create_task(pump.deliver())

    def reset(self) -> "asyncio.Task[None]":
        """Ends both sides with RST; the returned task is done when that has happened."""
        if self._task is None:
            raise ReplicatorError("a connection needs a task", subject="fault proxy")
        self.abort()
        self._task.cancel()
        return self._task

    def abort(self) -> None:
        """Closes both sockets at once, without a goodbye."""
        for writer in self._writers:
            abort(writer)


class _Pump:
    """One direction of a connection: received, held back as the faults ask, delivered."""

    def __init__(
        self,
        connection: ProxyConnection,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        faults: Callable[[], Faults],
        draw: random.Random,
    ) -> None:
        self._connection = connection
        self._reader = reader
        self._writer = writer
        self._faults = faults
        self._random = draw
        self._queue: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(
            _QUEUE_BYTES // _CHUNK_BYTES
        )

    async def receive(self) -> None:
        """Reads until the end; the end travels through the queue as an empty chunk."""
        loop = asyncio.get_running_loop()
        due = 0.0
        data = b"-"
        while data:
            data = await self._reader.read(_CHUNK_BYTES)
            faults = self._faults()
            delay = faults.latency_seconds + self._random.random() * faults.jitter_seconds
            due = max(due, loop.time() + delay)  # jitter never reorders a stream
            await self._queue.put((due, data))

    async def deliver(self) -> None:
        """Writes what is due; under a black hole it is dropped, and so is the end."""
        loop = asyncio.get_running_loop()
        while True:
            due, data = await self._queue.get()
            if due > loop.time():
                await asyncio.sleep(due - loop.time())
            faults = self._faults()
            if faults.swallow:
                self._connection.lost_bytes = True
                if not data:
                    await asyncio.Event().wait()  # the other side must not learn of the end
                continue
            if not data:
                break
            await self._write(data, faults)
        with contextlib.suppress(OSError):
            if self._writer.can_write_eof():
                self._writer.write_eof()

    async def _write(self, data: bytes, faults: Faults) -> None:
        self._writer.write(data)
        await self._writer.drain()
        if faults.bytes_per_second:
            await asyncio.sleep(len(data) / faults.bytes_per_second)
