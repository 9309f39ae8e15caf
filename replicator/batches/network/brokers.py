"""The connections to one cluster's brokers: dialled in threads, used on one selector, lost and made again."""

import selectors
import threading
import time
from collections.abc import Callable, Collection

from replicator.backoff import Backoff
from replicator.batches.network.buffers import BufferPool
from replicator.batches.network.channel import Channel, Frame
from replicator.batches.network.leaders import Leaders
from replicator.errors import ReplicatorError
from replicator.topology.plan import ClusterPlan
from replicator.wire.connection.connection import BrokerConnection
from replicator.wire.connection.errors import socket_error
from replicator.wire.probes.line import suit_to_line

_DIAL_SECONDS = 10.0
_NUMBER_BITS = 32
_BROKER_MASK = (1 << _NUMBER_BITS) - 1
_RETRY = Backoff(0.05, 2.0)
_RENEW_AGAIN_SECONDS = 2.0

Versions = dict[int, tuple[int, int]]


def connection_to(broker: int, number: int) -> int:
    """The node that stands for one of several connections to a broker; number 0 is the broker itself."""
    return broker | number << _NUMBER_BITS


def broker_of(node: int) -> int:
    """The broker behind a node."""
    return node & _BROKER_MASK


class _Dial:
    """One attempt; its thread ends by itself."""

    def __init__(self, cluster: ClusterPlan, address: tuple[str, int], client_id: str) -> None:
        self.answer: BrokerConnection | ReplicatorError | None = None
        self._given_up = False
        self._lock = threading.Lock()

        def dial() -> None:
            try:
                made: BrokerConnection | ReplicatorError = BrokerConnection(
                    cluster,
                    address,
                    client_id=client_id,
                    deadline=time.monotonic() + _DIAL_SECONDS,
                )
            except ReplicatorError as error:
                made = error
            except Exception as error:  # noqa: BLE001  without an answer it would be waited for without end
                made = ReplicatorError(f"unexpected: {error!r}")
            with self._lock:
                if not self._given_up:
                    self.answer = made
                    return
            if isinstance(made, BrokerConnection):
                made.close()

        threading.Thread(target=dial, name="dial", daemon=True).start()

    def give_up(self) -> None:
        """Nobody waits for it any more."""
        with self._lock:
            self._given_up = True
            answer, self.answer = self.answer, None
        if isinstance(answer, BrokerConnection):
            answer.close()


class Brokers:
    """One cluster's channels by broker id, or by ``connection_to`` where a broker has several; for one thread.

    Attributes:
        leaders: who leads what, and where brokers are.
        versions: by broker id, which versions of which requests it knows.
        failure: why a broker could not be reached just now; None once one answered.
    """

    def __init__(
        self,
        cluster: ClusterPlan,
        *,
        client_id: str,
        selector: selectors.BaseSelector,
        pool: BufferPool,
        on_frame: Callable[[int, Frame], None],
        on_lost: Callable[[int], None],
    ) -> None:
        """``on_frame`` takes a broker's response, ``on_lost`` hears that its connection is gone."""
        self.cluster = cluster
        self.leaders = Leaders(cluster, client_id=client_id)
        self.versions: dict[int, Versions] = {}
        self.failure: ReplicatorError | None = None
        self._client_id = client_id
        self._selector = selector
        self._pool = pool
        self._on_frame = on_frame
        self._on_lost = on_lost
        self._channels: dict[int, Channel] = {}
        self._dials: dict[int, _Dial] = {}
        self._failures: dict[int, tuple[int, float]] = {}
        self._in_flight: dict[int, int] = {}
        self._renew_at: dict[int, float] = {}
        self._renewals: dict[int, _Dial] = {}
        self._next: dict[int, BrokerConnection] = {}

    def channel(self, node: int, now: float) -> Channel | None:
        """The connection to a broker; None while it is being made, or may not be tried again yet.

        None as well for the moment in which one whose session ends soon is exchanged for another.
        """
        if node in self._next:
            return None
        open_channel = self._channels.get(node)
        if open_channel is None and node not in self._dials:
            address = self.leaders.seen.addresses.get(broker_of(node))
            if address is None:
                self.leaders.refresh()
            elif now >= self._failures.get(node, (0, 0.0))[1]:
                self._dials[node] = _Dial(self.cluster, address, self._client_id)
        return open_channel

    def tried(self, topics: Collection[str], *, connections: int, now: float) -> bool:
        """Connects to every broker that leads a partition of the topics; whether each was tried.

        Called again until it says so. What was wrong is in ``failure``.
        """
        self.leaders.follow(topics)
        seen = self.leaders.seen
        nodes = {
            connection_to(leader, number)
            for (topic, _), (leader, _) in seen.leaders.items()
            if topic in topics
            for number in range(connections)
        }
        # Each one is asked for, before it is asked whether all are there: they are dialled at once.
        there = [
            self.channel(node, now) is not None for node in nodes if node not in self._failures
        ]
        return bool(seen.addresses) and all(there)

    @property
    def dialling(self) -> bool:
        """Whether a connection or an answer about leaders is being waited for outside the selector."""
        return bool(self._dials or self._next) or not self.leaders.seen.addresses

    def look(self, now: float) -> None:
        """Takes in connections that were made, and news of leaders."""
        failed = self.leaders.look(now)
        if failed is not None:
            self.failure = failed
        for node, dial in list(self._dials.items()):
            if dial.answer is None:
                continue
            del self._dials[node]
            if isinstance(dial.answer, ReplicatorError):
                self._failed(node, dial.answer, now)
                continue
            self._use(node, dial.answer)
        self._renew(now)

    def _use(self, node: int, made: BrokerConnection) -> None:
        self.versions[node] = made.versions
        self._renew_at[node], self._in_flight[node] = made.renew_at, 0
        connected = made.into_socket()
        suit_to_line(connected)
        channel = Channel(connected, pool=self._pool, where=made.where)
        self._channels[node] = channel
        self._selector.register(channel.socket, selectors.EVENT_READ, (self, node))

    def _renew(self, now: float) -> None:
        """Another connection for each whose session ends soon, exchanged when nothing is under way.

        Brokers cut a connection whose session is over, whatever is under way on it. While there is no
        other one the old one is used.
        """
        for node, at in self._renew_at.items():
            if now >= at and node in self._channels and node not in {*self._renewals, *self._next}:
                address = self.leaders.seen.addresses.get(broker_of(node))
                if address is None:  # the cluster has forgotten a broker that is still connected
                    self._renew_at[node] = now + _RENEW_AGAIN_SECONDS
                    continue
                self._renewals[node] = _Dial(self.cluster, address, self._client_id)
        for node, dial in list(self._renewals.items()):
            if dial.answer is None:
                continue
            del self._renewals[node]
            if isinstance(dial.answer, BrokerConnection) and node in self._channels:
                self._next[node] = dial.answer
            elif isinstance(dial.answer, BrokerConnection):
                dial.answer.close()
            else:
                self._renew_at[node] = now + _RENEW_AGAIN_SECONDS
        for node, made in list(self._next.items()):
            if self._in_flight[node] == 0:
                del self._next[node]
                old = self._channels.pop(node)
                self._selector.unregister(old.socket)
                old.close()
                self._use(node, made)

    def send(self, node: int, channel: Channel, pieces: list[bytes | memoryview]) -> None:
        """Sends a request; a connection that fails is reported as lost later, like any other."""
        self._in_flight[node] = self._in_flight.get(node, 0) + 1
        try:
            channel.send(pieces)
        except (OSError, ReplicatorError) as error:
            self.lose(node, error)
            return
        self._watch(channel, node)

    def received_bytes(self, node: int) -> int:
        """What a broker has sent over this connection, also of a response that is not whole yet; 0 without one."""
        channel = self._channels.get(node)
        return 0 if channel is None else channel.received_bytes

    def serve(self, node: int, events: int, now: float) -> None:
        """The selector says that a broker's socket may be read or written.

        Raises:
            ReplicatorError: what a response says ends the session.
        """
        channel = self._channels.get(node)
        if channel is None:
            return
        frames: list[Frame] = []
        failure: Exception | None = None
        try:
            if events & selectors.EVENT_WRITE:
                channel.flush()
            if events & selectors.EVENT_READ:
                frames = channel.receive()
        except (OSError, ReplicatorError) as error:
            failure = error
        for frame in frames:
            self.failure = None
            self._failures.pop(node, None)
            self._in_flight[node] -= 1
            self._on_frame(node, frame)
        if failure is not None:
            self.lose(node, failure, now)
        else:
            self._watch(channel, node)

    def lose(self, node: int, error: Exception, now: float | None = None) -> None:
        """Closes a connection that is of no use any more."""
        channel = self._channels.pop(node, None)
        if channel is None:
            return
        self._selector.unregister(channel.socket)
        channel.close()
        self._renew_at.pop(node, None)
        if (made := self._next.pop(node, None)) is not None:
            made.close()
        self._failed(node, error, time.monotonic() if now is None else now, channel.where)
        self._on_lost(node)

    def close(self) -> None:
        """Hangs up on all of them."""
        for dial in self._dials.values():
            dial.give_up()
        for dial in self._renewals.values():
            dial.give_up()
        for made in self._next.values():
            made.close()
        self._dials.clear()
        self._renewals.clear()
        self._next.clear()
        for channel in self._channels.values():
            self._selector.unregister(channel.socket)
            channel.close()
        self._channels.clear()

    def _watch(self, channel: Channel, node: int) -> None:
        wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if channel.wants_to_write else 0)
        if (
            self._channels.get(node) is channel
            and self._selector.get_key(channel.socket).events != wanted
        ):
            self._selector.modify(channel.socket, wanted, (self, node))

    def _failed(self, node: int, error: Exception, now: float, where: str = "") -> None:
        count = self._failures.get(node, (0, 0.0))[0] + 1
        self._failures[node] = (count, now + _RETRY.seconds(count, lambda: 1.0))
        subject = f"cluster:{self.cluster.alias}"
        if isinstance(error, ReplicatorError):
            error.subject = error.subject or subject
            self.failure = error
        elif isinstance(error, OSError):
            self.failure = socket_error(error, subject=subject, where=where)
        self.leaders.refresh()
