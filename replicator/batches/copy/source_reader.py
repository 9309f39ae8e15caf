"""Reading partitions of one cluster: a fetch session per broker, the next fetch out as soon as one is in."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from replicator.batches.codec.fetch_codec import (
    API_KEY,
    WITH_IDS,
    WITH_NAMES,
    Fetched,
    TopicKey,
    Wanted,
    decode_fetch,
    encode_fetch,
)
from replicator.batches.codec.fetch_session import FetchSession
from replicator.batches.network.brokers import connection_to
from replicator.batches.network.buffers import Buffer
from replicator.batches.network.channel import Frame
from replicator.batches.network.io_loop import IoLoop
from replicator.errors import UnreachableError
from replicator.policy.capacity.line_settings import MOST_BYTES, fetch_bytes_at
from replicator.topology.plan import ClusterPlan

FETCH_WAIT_SECONDS = 0.5
"""How long a broker holds a fetch that finds nothing; records end the wait at once."""

ANSWER_SECONDS = 12.0
"""A broker that says nothing for so long behind that wait is taken for gone."""

FETCH_PACE_SECONDS = 0.002
"""A connection is asked no more often than this while its answers are small. A fetch that waits at the broker is
answered at once all the same; docs/decisions/a-trickle-is-fetched-in-paces.md."""

SMALL_ANSWER_BYTES = 64 * 1024
"""What is larger comes of a backlog, and is asked for at once."""

SINGLE_RECORDS_BYTES = 1024
"""An answer with a record or two."""

_RETRY_SECONDS = 0.1
_REPLICA_SECONDS = 300.0
FAILING_SECONDS = 5.0
"""How long a partition may have no leader, or none that answers for it, before that is told."""
Key = tuple[str, int]

MOVED = frozenset({5, 6, 9, 13, 56, 74, 75, 78, -1})
"""Errors of a partition that pass with another broker, or with time."""

GONE = frozenset({1, 3, 100, 103})
"""Errors that ask for a look at the source's log: out of range, unknown topic, another topic's id."""


class Reading:
    """One partition that is read, over its leader's connection of this ``number``.

    ``offset`` is the next one, ``last_epoch`` that of the record before.
    """

    __slots__ = (
        "failed_since", "high_watermark", "key", "last_epoch", "number", "offset", "paused", "replica", "replica_until",
        "retry_at",
    )  # fmt: skip

    def __init__(self, key: Key, offset: int, last_epoch: int, number: int = 0) -> None:
        self.key = key
        self.number = number
        self.offset = offset
        self.last_epoch = last_epoch
        self.high_watermark = -1
        self.failed_since = float("inf")
        self.paused = False
        self.retry_at = 0.0
        self.replica = -1
        self.replica_until = 0.0


@dataclass(slots=True)
class Arrived:
    """What came of one partition; ``buffer`` is held until its taker calls ``release``."""

    reading: Reading
    part: Fetched
    buffer: Buffer


@dataclass(slots=True)
class _Fetch:
    """A request whose answer has not come."""

    correlation: int
    version: int
    asked_at: float
    most_bytes: int
    asked: dict[tuple[TopicKey, int], tuple[Reading, int]]


class SourceReader:
    """For one thread. What arrives is kept until ``take_arrived``; positions are the caller's to move."""

    def __init__(
        self,
        cluster: ClusterPlan,
        loop: IoLoop,
        *,
        client_id: str,
        rack: str,
        connections: int = 1,
        first_bytes: int = MOST_BYTES,
        paced_from_bytes: int = 0,
    ) -> None:
        """``connections`` to each broker share its partitions, each with a fetch of its own.

        Behind an answer of at least ``paced_from_bytes`` the next fetch keeps to the pace.

        Fetches are as large as a connection carries in a second; ``first_bytes`` until that is known.
        """
        self.brokers = loop.brokers(
            cluster, client_id=client_id, on_frame=self.on_frame, on_lost=self.on_lost
        )
        self._client_id = client_id
        self._rack = rack
        self._connections = connections
        self._first_bytes = first_bytes
        self._paced_from_bytes = paced_from_bytes
        self._bytes: dict[int, int] = {}
        self._retry_at = 0.0
        self._ask_at: dict[int, float] = {}
        self._read = 0
        self._readings: dict[Key, Reading] = {}
        self._sessions: dict[int, FetchSession] = {}
        self._fetches: dict[int, _Fetch] = {}
        self._frames: deque[tuple[_Fetch, int, Frame]] = deque()
        self._correlation = 0

    def read_from(self, key: Key, offset: int, last_epoch: int) -> None:
        """Reads a partition from an offset on, whatever was read of it before."""
        before = self._readings.get(key)
        number = self._read % self._connections if before is None else before.number
        self._read += before is None
        self._readings[key] = Reading(key, offset, last_epoch, number)
        self.brokers.leaders.follow([key[0]])

    def stop(self, keys: Iterable[Key]) -> None:
        """Reads partitions no longer; what has arrived of them is left out too."""
        for key in keys:
            self._readings.pop(key, None)

    def pause(self, keys: Iterable[Key], *, paused: bool) -> None:
        """Holds partitions back, or lets them go on."""
        for key in keys:
            if key in self._readings:
                self._readings[key].paused = paused

    def reading(self, key: Key) -> Reading | None:
        """A partition that is read now."""
        return self._readings.get(key)

    @property
    def waiting(self) -> bool:
        """Whether answers have come that nobody has taken."""
        return bool(self._frames)

    @property
    def reached(self) -> bool:
        """Whether a broker answers for every partition that is read."""
        seen = self.brokers.leaders.seen
        return self.brokers.failure is None and all(key in seen.leaders for key in self._readings)

    def retry_later(self, reading: Reading, now: float) -> None:
        """Asks for a partition again in a moment, of the broker that leads it then."""
        reading.retry_at = self._retry_at = now + _RETRY_SECONDS
        reading.failed_since = min(reading.failed_since, now)
        reading.replica = -1
        self.brokers.leaders.refresh()

    def seconds_to_retry(self, now: float) -> float:
        """Until a partition that could not be read is asked for again; infinite where none is."""
        return self._retry_at - now if self._retry_at > now else float("inf")

    def seconds_to_ask(self, now: float) -> float:
        """Until a connection may be asked that had a small answer just now; infinite where none waits for that."""
        return min((at - now for at in self._ask_at.values() if at > now), default=float("inf"))

    def failing(self, now: float) -> list[Key]:
        """Partitions that no leader has answered for in FAILING_SECONDS."""
        return [
            key
            for key, reading in self._readings.items()
            if now - reading.failed_since > FAILING_SECONDS
        ]

    def prefer(self, reading: Reading, node: int, now: float) -> None:
        """Reads from a replica near by for a while."""
        reading.replica, reading.replica_until = node, now + _REPLICA_SECONDS

    def pump(self, now: float, *, fetch_bytes: int, partition_bytes: int) -> None:
        """Sends every broker its next fetch, where it has none and something is to be read of it."""
        # Asked before its last answer is taken in, a broker would see that epoch of the session again and void it.
        busy = {*self._fetches, *(node for _, node, _ in self._frames)}
        for node, wanted in self._by_node(now).items():
            if node in busy or now < self._ask_at.get(node, 0.0):
                continue
            channel = self.brokers.channel(node, now)
            if channel is None:
                continue
            version = min(WITH_IDS, self.brokers.versions[node].get(API_KEY, (0, WITH_NAMES))[1])
            most = min(fetch_bytes, self._bytes.get(node, self._first_bytes))
            asked, partitions = self._asked(wanted, version, min(most, partition_bytes))
            if not asked:
                continue
            session = self._sessions.setdefault(node, FetchSession())
            delta = session.ask(partitions)
            self._correlation = (self._correlation + 1) & 0x7FFFFFFF
            frame = encode_fetch(
                version=version,
                correlation=self._correlation,
                client_id=self._client_id,
                wait_ms=round(FETCH_WAIT_SECONDS * 1000),
                min_bytes=1,
                most_bytes=most,
                session=delta.session,
                wanted=delta.wanted,
                forgotten=delta.forgotten,
                rack=self._rack,
            )
            self._fetches[node] = _Fetch(self._correlation, version, now, most, asked)
            self.brokers.send(node, channel, [frame])

    def look(self, now: float) -> None:
        """Gives up on brokers that owe an answer for too long."""
        for node, fetch in list(self._fetches.items()):
            if now > fetch.asked_at + FETCH_WAIT_SECONDS + ANSWER_SECONDS:
                self.brokers.lose(node, _silent("the source", ANSWER_SECONDS))

    def on_frame(self, node: int, frame: Frame) -> None:
        """A broker has answered; what it says is looked at when the caller takes it."""
        fetch = self._fetches.pop(node, None)
        if fetch is None or fetch.correlation != frame.correlation:
            raise UnreachableError("a broker of the source answers what was not asked")
        self._frames.append((fetch, node, frame))

    def on_lost(self, node: int) -> None:
        """The connection is gone, and with it the fetch session."""
        self._fetches.pop(node, None)
        self._sessions.pop(node, None)
        self._bytes.pop(node, None)
        self._ask_at.pop(node, None)
        for reading in self._readings.values():
            if connection_to(reading.replica, reading.number) == node:
                reading.replica = -1

    def take_arrived(self, now: float) -> list[Arrived]:
        """What has come of partitions that still stand where they stood when it was asked for.

        Raises:
            StoredFormatError: a response cannot be read.
        """
        arrived: list[Arrived] = []
        while self._frames:
            fetch, node, frame = self._frames.popleft()
            self._measure(fetch, node, len(frame.body), now)
            paced = self._paced_from_bytes <= len(frame.body) < SMALL_ANSWER_BYTES
            self._ask_at[node] = fetch.asked_at + FETCH_PACE_SECONDS if paced else 0.0
            answer = decode_fetch(frame.body, version=fetch.version)
            session = self._sessions.get(node)
            if session is not None:
                session.answered(answer.error, answer.session_id)
            if answer.error:
                for reading, _ in fetch.asked.values():
                    self.retry_later(reading, now)
            else:
                # A broker names every partition that it cannot read, whatever it named before.
                refused = {(part.topic, part.partition) for part in answer.parts if part.error}
                for name, (reading, _) in fetch.asked.items():
                    if name not in refused:
                        reading.failed_since = float("inf")
            for part in answer.parts:
                found = fetch.asked.get((part.topic, part.partition))
                if found is None:
                    continue
                reading, offset = found
                if self._readings.get(reading.key) is reading and reading.offset == offset:
                    frame.buffer.hold()
                    arrived.append(Arrived(reading, part, frame.buffer))
            frame.buffer.release()
        return arrived

    def _measure(self, fetch: _Fetch, node: int, size: int, now: float) -> None:
        if 2 * size >= fetch.most_bytes:  # what is smaller says more of the topic than of the line
            self._bytes[node] = fetch_bytes_at(size, now - fetch.asked_at)

    def _by_node(self, now: float) -> dict[int, list[Reading]]:
        by_node: dict[int, list[Reading]] = {node: [] for node in self._sessions}
        for reading in self._readings.values():
            if reading.paused or now < reading.retry_at:
                continue
            leader = self.brokers.leaders.of(*reading.key)
            if leader is None:
                reading.failed_since = min(reading.failed_since, now)
                continue
            node = leader[0]
            if reading.replica >= 0 and now < reading.replica_until:
                node = reading.replica
            by_node.setdefault(connection_to(node, reading.number), []).append(reading)
        return by_node

    def _asked(
        self, readings: list[Reading], version: int, partition_bytes: int
    ) -> tuple[dict[tuple[TopicKey, int], tuple[Reading, int]], dict[tuple[TopicKey, int], Wanted]]:
        seen = self.brokers.leaders.seen
        asked: dict[tuple[TopicKey, int], tuple[Reading, int]] = {}
        partitions: dict[tuple[TopicKey, int], Wanted] = {}
        for reading in readings:
            topic, partition = reading.key
            name: TopicKey = topic if version < WITH_IDS else seen.topic_ids[topic]
            epoch = seen.leaders[reading.key][1]
            partitions[name, partition] = Wanted(
                reading.offset, epoch, reading.last_epoch, partition_bytes
            )
            asked[name, partition] = (reading, reading.offset)
        return asked, partitions


def _silent(who: str, seconds: float) -> UnreachableError:
    return UnreachableError(
        f"a broker of {who} did not answer within {seconds:g} seconds",
        remedy="Check that the brokers run and that nothing between here and them swallows data.",
    )
