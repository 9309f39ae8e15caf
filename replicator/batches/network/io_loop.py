"""One selector for all connections of a lane, to the source's brokers and to the target's."""

import selectors
from collections.abc import Callable, Collection

from replicator.batches.network.brokers import Brokers
from replicator.batches.network.buffers import BufferPool
from replicator.batches.network.channel import Frame
from replicator.clock import Clock
from replicator.errors import AuthenticationFailedError, UnreachableError
from replicator.topology.plan import ClusterPlan

_DIALLING_SECONDS = 0.01
"""How long a turn waits at most while something happens outside the selector."""

TRIM_SECONDS = 30.0
"""How often a loop lets go of buffers that nobody needed since the last time."""


class IoLoop:
    """For one thread.

    Attributes:
        pool: where the responses of all its connections are received into.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._selector = selectors.DefaultSelector()
        self.pool = BufferPool()
        self._trimmed_at = clock.monotonic()
        self._brokers: list[Brokers] = []

    def brokers(
        self,
        cluster: ClusterPlan,
        *,
        client_id: str,
        on_frame: Callable[[int, Frame], None],
        on_lost: Callable[[int], None],
    ) -> Brokers:
        """The connections to a cluster, served by this loop."""
        made = Brokers(
            cluster,
            client_id=client_id,
            selector=self._selector,
            pool=self.pool,
            on_frame=on_frame,
            on_lost=on_lost,
        )
        self._brokers.append(made)
        return made

    def connect(
        self, wanted: Collection[tuple[Brokers, Collection[str], int]], seconds: float
    ) -> None:
        """Connects to the brokers that lead each cluster's topics; the number is that of connections to each.

        A broker that is down keeps nobody from using the others. One that refuses us does.

        Raises:
            ReplicatorError: a cluster refuses us, or says nothing for so many seconds.
        """
        deadline = self._clock.monotonic() + seconds
        while True:
            now = self._clock.monotonic()
            tried = [
                brokers.tried(topics, connections=connections, now=now)
                for brokers, topics, connections in wanted
            ]
            failures = [each.failure for each, *_ in wanted if each.failure is not None]
            for failure in failures:
                if isinstance(failure, AuthenticationFailedError):
                    raise failure
            if all(tried):
                return
            if now >= deadline:
                raise (
                    failures[0]
                    if failures
                    else UnreachableError(
                        f"no broker answers within {seconds:g} seconds",
                        remedy="Check that the brokers run and can be reached.",
                    )
                )
            self.turn(_DIALLING_SECONDS)

    def turn(self, seconds: float) -> None:
        """Waits for so many seconds at most until something can be read or written, and does it.

        Raises:
            ReplicatorError: what a broker says ends the session.
        """
        if any(each.dialling for each in self._brokers):
            seconds = min(seconds, _DIALLING_SECONDS)
        ready = self._selector.select(max(0.0, seconds))
        now = self._clock.monotonic()
        for each in self._brokers:
            each.look(now)
        for key, events in ready:
            brokers, node = key.data
            brokers.serve(node, events, now)
        if now > self._trimmed_at + TRIM_SECONDS:
            self._trimmed_at = now
            self.pool.trim()

    def close(self) -> None:
        """Hangs up on all brokers."""
        for each in self._brokers:
            each.close()
        self._selector.close()
