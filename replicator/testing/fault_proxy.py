"""A TCP proxy that breaks the network on command, one in front of each broker.

The broker advertises the proxy's address, so every client of the cluster goes through it. All
proxies of a process share one event loop in a thread of its own; the methods here are plain
blocking calls that return when the fault is in force.
"""

import asyncio
import contextlib
import random
import socket
import struct
import threading
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, replace
from typing import Literal

from replicator.errors import ReplicatorError

Direction = Literal["both", "to-broker", "to-client"]

_CHUNK_BYTES = 65_536
_QUEUE_BYTES = 8 * 1024 * 1024  # what may be under way in one direction of one connection
_CALL_TIMEOUT_SECONDS = 10.0
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER on, zero seconds: close sends RST


@dataclass(frozen=True, slots=True)
class Faults:
    """What happens to bytes in one direction."""

    latency_seconds: float = 0.0
    jitter_seconds: float = 0.0
    bytes_per_second: float | None = None
    swallow: bool = False


class _Network:
    """The event loop all proxies of this process live on."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, name="fault-proxy", daemon=True).start()

    def call(self, action: Callable[[], object]) -> None:
        """Runs ``action`` on the loop and waits for it."""

        async def run() -> None:
            outcome = action()
            if asyncio.iscoroutine(outcome):
                await outcome

        asyncio.run_coroutine_threadsafe(run(), self.loop).result(_CALL_TIMEOUT_SECONDS)


_lock = threading.Lock()
_network: list[_Network] = []


def _shared_network() -> _Network:
    with _lock:
        if not _network:
            _network.append(_Network())
        return _network[0]


class FaultProxy:
    """Forwards ``port`` to ``target_port`` on loopback, until told to misbehave."""

    def __init__(self, *, port: int, target_port: int, seed: int = 0) -> None:
        self.port = port
        self._target_port = target_port
        self._random = random.Random(seed)
        self._faults = {"to-broker": Faults(), "to-client": Faults()}
        self._connections: set[_Connection] = set()
        self._listener: socket.socket | None = None
        self._network = _shared_network()

    def start(self) -> None:
        """Begins to listen.

        Raises:
            OSError: when the port is taken.
        """
        self._network.call(self._listen)

    def stop(self) -> None:
        """Closes the listener and every connection."""
        self._network.call(self._shut)

    def cut(self) -> None:
        """The broker's host is up and its port closed: connections are reset and refused."""
        self._network.call(self._shut)

    def black_hole(self, direction: Direction = "both") -> None:
        """Bytes vanish without a trace: nobody is told, new connections are still accepted.

        With one direction only, for example ``to-client``, requests arrive and answers get lost.
        """
        self._change(direction, lambda faults: replace(faults, swallow=True))

    def latency(
        self, seconds: float, *, jitter_seconds: float = 0.0, direction: Direction = "both"
    ) -> None:
        """Every byte arrives later by ``seconds`` and up to ``jitter_seconds`` more, in order."""
        self._change(
            direction,
            lambda faults: replace(faults, latency_seconds=seconds, jitter_seconds=jitter_seconds),
        )

    def bandwidth(self, bytes_per_second: float, *, direction: Direction = "both") -> None:
        """Limits each connection to a rate."""
        self._change(direction, lambda faults: replace(faults, bytes_per_second=bytes_per_second))

    def heal(self) -> None:
        """Ends all faults; connections that lost bytes are reset, as they can not be mended."""
        self._network.call(self._heal)

    @property
    def connection_count(self) -> int:
        """Connections open now, from the clients' side."""
        return len(self._connections)

    def _change(self, direction: Direction, change: Callable[[Faults], Faults]) -> None:
        def apply() -> None:
            for name, faults in self._faults.items():
                if direction in ("both", name):
                    self._faults[name] = change(faults)

        self._network.call(apply)

    async def _listen(self) -> None:
        # Not asyncio's server: it can drop a connection that it accepts in the moment it closes,
        # and leave the socket to the collector.
        if self._listener is None:
            listener = socket.create_server(("127.0.0.1", self.port), backlog=256)
            listener.setblocking(False)
            self._listener = listener
            asyncio.get_running_loop().add_reader(listener, self._accept, listener)

    async def _shut(self) -> None:
        if self._listener is not None:
            asyncio.get_running_loop().remove_reader(self._listener)
            self._listener.close()
            self._listener = None
        await self._reset(list(self._connections))

    async def _heal(self) -> None:
        self._faults = dict.fromkeys(self._faults, Faults())
        await self._reset([each for each in self._connections if each.lost_bytes])
        await self._listen()

    @staticmethod
    async def _reset(connections: "Iterable[_Connection]") -> None:
        tasks = [connection.reset() for connection in connections]
        if tasks:
            await asyncio.wait(tasks, timeout=_CALL_TIMEOUT_SECONDS / 2)

    def _accept(self, listener: socket.socket) -> None:
        try:
            accepted, _ = listener.accept()
        except OSError:
            return  # the client has gone again
        connection = _Connection(accepted)
        self._connections.add(connection)
        connection.start(
            self._serve(connection), ended=lambda: self._connections.discard(connection)
        )

    async def _serve(self, connection: "_Connection") -> None:
        # The broker is down, or a side reset: the client sees a reset too. Python 3.11's suppress
        # does not look into the group that a task group raises.
        with contextlib.suppress(asyncio.CancelledError):
            try:
                await connection.run(self._target_port, self._faults_of, self._random)
            except* OSError:
                pass

    def _faults_of(self, direction: str) -> Faults:
        return self._faults[direction]


class _Connection:
    """One client connection and its counterpart to the broker."""

    def __init__(self, accepted: socket.socket) -> None:
        accepted.setblocking(False)
        self._accepted = accepted
        self._task: asyncio.Task[None] | None = None
        self._writers: list[asyncio.StreamWriter] = []
        self.lost_bytes = False

    def start(self, work: Coroutine[None, None, None], *, ended: Callable[[], None]) -> None:
        """Does the work in a task; however that ends, both sides are closed then."""

        def close(_task: object) -> None:
            self.abort()
            ended()

        self._task = asyncio.get_running_loop().create_task(work)
        self._task.add_done_callback(close)

    async def run(
        self, target_port: int, faults_of: Callable[[str], Faults], draw: random.Random
    ) -> None:
        """Pumps both ways until both sides have ended or one has failed."""
        if faults_of("to-broker").swallow and faults_of("to-client").swallow:
            # Accepted by nobody: the peer hears nothing until the network heals.
            self.lost_bytes = True
            await asyncio.Event().wait()
        theirs, ours = await asyncio.open_connection(sock=self._accepted, limit=_CHUNK_BYTES)
        self._writers.append(ours)
        reader, writer = await self._connect(target_port)
        self._writers.append(writer)
        async with asyncio.TaskGroup() as pumps:
            up = _Pump(self, theirs, writer, lambda: faults_of("to-broker"), draw)
            down = _Pump(self, reader, ours, lambda: faults_of("to-client"), draw)
            for pump in (up, down):
                pumps.create_task(pump.receive())
                pumps.create_task(pump.deliver())

    @staticmethod
    async def _connect(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connects to the broker; a reset meanwhile must not leave a socket that nobody closes."""
        connecting = asyncio.ensure_future(
            asyncio.open_connection("127.0.0.1", port, limit=_CHUNK_BYTES)
        )
        try:
            return await asyncio.shield(connecting)
        except asyncio.CancelledError:
            connecting.add_done_callback(_close_late)
            raise

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
            sock = writer.get_extra_info("socket")
            if sock is not None and sock.fileno() >= 0:
                with contextlib.suppress(OSError):
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            writer.transport.abort()
        if not self._writers and self._accepted.fileno() >= 0:
            with contextlib.suppress(OSError):
                self._accepted.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            self._accepted.close()


def _close_late(
    connected: "asyncio.Future[tuple[asyncio.StreamReader, asyncio.StreamWriter]]",
) -> None:
    if not connected.cancelled() and connected.exception() is None:
        connected.result()[1].transport.abort()


class _Pump:
    """One direction of a connection: received, held back as the faults ask, delivered."""

    def __init__(
        self,
        connection: _Connection,
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


class ProxyGroup:
    """The proxies of all brokers of a cluster, as one."""

    def __init__(self, proxies: Iterable[FaultProxy]) -> None:
        self._proxies = tuple(proxies)

    def cut(self) -> None:
        """See ``FaultProxy.cut``."""
        for proxy in self._proxies:
            proxy.cut()

    def black_hole(self, direction: Direction = "both") -> None:
        """See ``FaultProxy.black_hole``."""
        for proxy in self._proxies:
            proxy.black_hole(direction)

    def latency(
        self, seconds: float, *, jitter_seconds: float = 0.0, direction: Direction = "both"
    ) -> None:
        """See ``FaultProxy.latency``."""
        for proxy in self._proxies:
            proxy.latency(seconds, jitter_seconds=jitter_seconds, direction=direction)

    def bandwidth(self, bytes_per_second: float, *, direction: Direction = "both") -> None:
        """See ``FaultProxy.bandwidth``."""
        for proxy in self._proxies:
            proxy.bandwidth(bytes_per_second, direction=direction)

    def heal(self) -> None:
        """See ``FaultProxy.heal``."""
        for proxy in self._proxies:
            proxy.heal()
