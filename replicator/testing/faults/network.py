"""The event loop that all proxies of this process live on, in a thread of its own."""

import asyncio
import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Coroutine

_RESET = struct.pack("ii", 1, 0)  # SO_LINGER on, zero seconds: close sends RST
_CALL_TIMEOUT_SECONDS = 10.0


class Network:
    """Runs the proxies; their public methods are plain blocking calls from other threads."""

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
_network: list[Network] = []


def shared_network() -> Network:
    """The one loop, started by the first proxy that asks."""
    with _lock:
        if not _network:
            _network.append(Network())
        return _network[0]


def listen(
    port: int, accepted: Callable[[socket.socket], None], *, host: str = "127.0.0.1"
) -> socket.socket:
    """Listens on loopback (0: any free port) and hands over what is accepted; on the loop only.

    Not asyncio's server: it can drop a connection that it accepts in the moment it closes, and leave
    the socket to the collector.
    """
    listener = socket.create_server((host, port), backlog=256)
    listener.setblocking(False)

    def accept() -> None:
        try:
            connection, _ = listener.accept()
        except OSError:
            return  # the client has gone again
        connection.setblocking(False)
        accepted(connection)

    asyncio.get_running_loop().add_reader(listener, accept)
    return listener


def stop_listening(listener: socket.socket) -> None:
    """Closes a listener; on the loop only."""
    asyncio.get_running_loop().remove_reader(listener)
    listener.close()


def send_reset_on_close(sock: socket.socket) -> None:
    """What closes the socket next tells the other side with a reset, not with a goodbye."""
    if sock.fileno() >= 0:
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)


def abort(writer: asyncio.StreamWriter) -> None:
    """Closes a stream at once with a reset."""
    sock = writer.get_extra_info("socket")
    if sock is not None:
        send_reset_on_close(sock)
    writer.transport.abort()


Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def opened(opening: Coroutine[None, None, Streams]) -> Streams:
    """The streams of a connection that is being opened; a cancellation meanwhile leaks no socket.

    Raises:
        OSError: nobody answers.
    """
    connecting = asyncio.ensure_future(opening)
    try:
        return await asyncio.shield(connecting)
    except asyncio.CancelledError:
        connecting.add_done_callback(_abort_late)
        raise


def serve(
    accepted: socket.socket,
    work: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[None, None, None]],
    *,
    limit: int,
) -> "asyncio.Task[None]":
    """Works on an accepted connection in a task; however that ends, a reset ends the connection.

    Nothing but its transport ever closes the socket: closed beneath it, its number goes to the next
    connection, whose events the transport would then end in its stead.
    """
    # Not a part of the task, so never cancelled: it takes two turns of the loop.
    opening = asyncio.ensure_future(asyncio.open_connection(sock=accepted, limit=limit))

    async def run() -> None:
        reader, writer = await asyncio.shield(opening)
        await work(reader, writer)

    task = asyncio.get_running_loop().create_task(run())
    task.add_done_callback(lambda _: opening.add_done_callback(_abort_late))
    return task


def _abort_late(connected: "asyncio.Future[Streams]") -> None:
    if not connected.cancelled() and connected.exception() is None:
        abort(connected.result()[1])
