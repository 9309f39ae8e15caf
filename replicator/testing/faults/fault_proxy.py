"""A TCP proxy that breaks the network on command, one in front of each broker.

The broker advertises the proxy's address, so every client of the cluster goes through it. All
proxies of a process share one event loop in a thread of its own; the methods here are plain
blocking calls that return when the fault is in force.
"""

import asyncio
import random
import socket
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Literal

from replicator.testing.faults.network import listen, shared_network, stop_listening
from replicator.testing.faults.proxy_connection import Faults, ProxyConnection

Direction = Literal["both", "to-broker", "to-client"]

_CALL_TIMEOUT_SECONDS = 10.0


class FaultProxy:
    """Forwards ``port`` to ``target_port`` on loopback, with the faults that are switched on.

    ``host`` is the loopback address that it listens on.
    """

    def __init__(
        self, *, port: int, target_port: int, seed: int = 0, host: str = "127.0.0.1"
    ) -> None:
        self.port = port
        self._host = host
        self.target_port = target_port
        self._random = random.Random(seed)
        self._faults = {"to-broker": Faults(), "to-client": Faults()}
        self._connections: set[ProxyConnection] = set()
        self._listener: socket.socket | None = None
        self._network = shared_network()

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
        """Bytes are dropped without an error; new connections are still accepted.

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
        if self._listener is None:
            self._listener = listen(self.port, self._accept, host=self._host)

    async def _shut(self) -> None:
        if self._listener is not None:
            stop_listening(self._listener)
            self._listener = None
        await self._reset(list(self._connections))

    async def _heal(self) -> None:
        self._faults = dict.fromkeys(self._faults, Faults())
        await self._reset([each for each in self._connections if each.lost_bytes])
        await self._listen()

    @staticmethod
    async def _reset(connections: Iterable[ProxyConnection]) -> None:
        tasks = [connection.reset() for connection in connections]
        if tasks:
            await asyncio.wait(tasks, timeout=_CALL_TIMEOUT_SECONDS / 2)

    def _accept(self, accepted: socket.socket) -> None:
        connection = ProxyConnection()
        self._connections.add(connection)
        connection.start(
            accepted,
            self.target_port,
            self._faults_of,
            self._random,
            ended=lambda: self._connections.discard(connection),
        )

    def _faults_of(self, direction: str) -> Faults:
        return self._faults[direction]


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
