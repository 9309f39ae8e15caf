"""A proxy in front of a whole cluster that reads the protocol, and breaks the requests it is told to.

Brokers' addresses are changed in every response that carries them, so clients that begin behind the
proxy stay behind it, whatever the cluster advertises. For plaintext listeners only.
"""

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self

from replicator.errors import InputError
from replicator.testing.faults.network import (
    listen,
    opened,
    serve,
    shared_network,
    stop_listening,
)
from replicator.testing.faults.protocol_connection import FrameStream, Held, ProtocolConnection
from replicator.testing.faults.protocol_rules import Countdown, Request, Rule, Script

_STREAM_BYTES = 1 << 20
_IDLE_CHECKS = 4
"""How often in its idle time a connection is looked at."""


class ProtocolProxy:
    """Between clients and the brokers of one cluster; also a context manager.

    Example:
        >>> rule = Rule(Match(Api.END_TXN), Hold(until=Match(Api.PRODUCE)))
        >>> with ProtocolProxy(cluster.bootstrap_servers, [rule]) as proxy:
        ...     Producer({"bootstrap.servers": ",".join(proxy.bootstrap_servers)})
    """

    def __init__(
        self,
        bootstrap_servers: Sequence[str],
        rules: Iterable[Rule] = (),
        *,
        idle_seconds: float | None = None,
    ) -> None:
        """``idle_seconds``: connections that are silent for so long are closed."""
        if not bootstrap_servers:
            raise InputError("a proxy needs the address of a broker", subject="protocol proxy")
        self._brokers = [_address(server) for server in bootstrap_servers]
        self._idle_seconds = idle_seconds
        self._network = shared_network()
        self._listeners: dict[tuple[str, int], socket.socket] = {}
        self._held: list[tuple[Held, Countdown | None]] = []
        self._serving: set[asyncio.Task[None]] = set()
        self._script = Script(rules)
        self._requests: list[Request] = []
        self.topic_names: dict[Any, str] = {}
        self.delivered = 0
        """How many held requests the broker has got late."""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Begins to listen, one port for each broker that was named; more come as they are learned."""
        self._network.call(self._listen)

    def stop(self) -> None:
        """Closes every listener and connection; what is held is never delivered."""
        self._network.call(self._shut)

    def play(self, rules: Iterable[Rule]) -> None:
        """Other rules from now on; requests are counted anew, what is held stays held."""
        chosen = tuple(rules)

        def change() -> None:
            self._script = Script(chosen)
            self._requests = []

        self._network.call(change)

    def release(self) -> None:
        """Delivers all that is held, and returns when the brokers have answered it."""
        self._network.call(lambda: self._deliver(lambda _: True))

    @property
    def bootstrap_servers(self) -> list[str]:
        """What clients connect to instead of the brokers."""
        return [f"127.0.0.1:{self._listeners[each].getsockname()[1]}" for each in self._brokers]

    @property
    def requests(self) -> Sequence[Request]:
        """Every request since the rules were set, in the order of its arrival."""
        return tuple(self._requests)

    @property
    def held(self) -> int:
        """How many requests are held now."""
        return len(self._held)

    def applied(self, rule: Rule) -> int:
        """How many requests a rule has met."""
        return self._script.applied(rule)

    # Called by connections, on the loop.

    def on_request(self, request: Request) -> tuple[Rule, ...]:
        """See ``Host``."""
        self._requests.append(request)
        return self._script.apply(request)

    async def on_answer(self, request: Request) -> None:
        """See ``Host``."""
        await self._deliver(lambda waits: waits is not None and waits.is_over(request))

    async def on_held(self, held: Held) -> None:
        """See ``Host``."""
        self._held.append((held, None if held.until is None else Countdown(held.until)))

    def address_for(self, address: tuple[str, int]) -> tuple[str, int]:
        """See ``Host``."""
        listener = self._listeners.get(address)
        if listener is None:
            listener = listen(0, lambda accepted: self._accept(accepted, address))
            self._listeners[address] = listener
        return "127.0.0.1", listener.getsockname()[1]

    async def _deliver(self, due: Callable[[Countdown | None], bool]) -> None:
        chosen = [each for each in self._held if due(each[1])]
        self._held = [each for each in self._held if each not in chosen]
        for held, _ in chosen:
            with contextlib.suppress(OSError, TimeoutError):
                await held.deliver()
            self.delivered += 1

    def _accept(self, accepted: socket.socket, broker: tuple[str, int]) -> None:
        async def work(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            # The broker may be down: the client sees a reset then.
            with contextlib.suppress(OSError):
                await self._serve(FrameStream(reader, writer), broker)

        task = serve(accepted, work, limit=_STREAM_BYTES)
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    async def _serve(self, client: FrameStream, broker: tuple[str, int]) -> None:
        upstream = FrameStream(*await opened(asyncio.open_connection(*broker, limit=_STREAM_BYTES)))
        connection = ProtocolConnection(self, client, upstream)
        idle = asyncio.ensure_future(self._end_when_idle(connection))
        try:
            await connection.run()
        finally:
            idle.cancel()

    async def _end_when_idle(self, connection: ProtocolConnection) -> None:
        if self._idle_seconds is None:
            return
        loop = asyncio.get_running_loop()
        while loop.time() - connection.used_at < self._idle_seconds:
            await asyncio.sleep(self._idle_seconds / _IDLE_CHECKS)
        connection.end()

    async def _listen(self) -> None:
        for broker in self._brokers:
            self.address_for(broker)

    async def _shut(self) -> None:
        for listener in self._listeners.values():
            stop_listening(listener)
        self._listeners.clear()
        for held, _ in self._held:
            held.close()
        self._held.clear()
        serving = list(self._serving)
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)


def _address(server: str) -> tuple[str, int]:
    host, _, port = server.rpartition(":")
    return host, int(port)
