"""Reading partitions of one cluster: a fetch session per broker, the next fetch out as soon as one is in."""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

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
from replicator.batches.copy.readings import Key, Reading, Readings
from replicator.batches.network.buffers import Buffer
from replicator.batches.network.channel import Frame
from replicator.batches.network.io_loop import IoLoop
from replicator.errors import HeldBackError, StoredFormatError, UnreachableError
from replicator.policy.capacity.broker_quota import RAISE_QUOTA, BrokerQuota
from replicator.policy.capacity.line_settings import (
    LEAST_FETCH_BYTES,
    MOST_BYTES,
    fetch_bytes_at,
)
from replicator.topology.plan import ClusterPlan

FETCH_WAIT_SECONDS = 0.5
"""How long a broker holds a fetch that finds nothing; records end the wait at once."""

ANSWER_SECONDS = 12.0
"""A broker that sends nothing for so long behind that wait is taken for gone."""

SLOW_SECONDS = 4.0
"""An answer that is not whole so long behind that wait comes over a line that carries little, if it comes."""

FETCH_PACE_SECONDS, COMMITTED_FETCH_PACE_SECONDS = 0.003, 0.002
"""A connection is asked no more often than this while its answers are small. A fetch that waits at the broker is
answered at once all the same. Shorter where records wait for a commit too; docs/decisions/a-trickle-is-fetched-in-paces.md."""

SMALL_ANSWER_BYTES = 64 * 1024
"""What is larger comes of a backlog, and is asked for at once."""

MOVED = frozenset({5, 6, 9, 13, 56, 74, 75, 78, -1})
"""Errors of a partition that pass with another broker, or with time."""

GONE = frozenset({1, 3, 100, 103})
"""Errors that ask for a look at the source's log: out of range, unknown topic, another topic's id."""


@dataclass(slots=True)
class Arrived:
    """What came of one partition; ``buffer`` is held until its taker calls ``release``."""

    reading: Reading
    part: Fetched
    buffer: Buffer


@dataclass(slots=True)
class _Fetch:
    """A request whose answer has not come, or not whole.

    Attributes:
        received_bytes: of its connection, when that was last looked at.
        heard_at: when some of the answer had come at a look; before any look long ago.
    """

    correlation: int
    asked_at: float
    most_bytes: int
    question: "_Question"
    received_bytes: int
    heard_at: float = float("-inf")

    def is_slow(self, now: float) -> bool:
        """Whether the answer should be there by now."""
        return now > self.asked_at + FETCH_WAIT_SECONDS + SLOW_SECONDS

    def silent_seconds(self, now: float) -> float:
        """For how long nothing of the answer has come that was due."""
        return now - max(self.heard_at, self.asked_at + FETCH_WAIT_SECONDS)


@dataclass(slots=True)
class _Question:
    """What one connection is asked for, whatever the size of the answer.

    Attributes:
        readings: what it was made of; valid while that is the same object, and nothing of it has come since.
        asked: with the offset at that moment.
    """

    readings: Sequence[Reading]
    version: int
    partition_bytes: int
    asked: dict[tuple[TopicKey, int], tuple[Reading, int]] = field(default_factory=dict)
    wanted: dict[tuple[TopicKey, int], Wanted] = field(default_factory=dict)

    def partitions(self) -> Iterator[Key]:
        """The partitions that are asked for."""
        return (reading.key for reading, _ in self.asked.values())

    def still(self, readings: Sequence[Reading], version: int, partition_bytes: int) -> bool:
        """Whether it is the question about these."""
        return (
            self.readings is readings
            and self.version == version
            and self.partition_bytes == partition_bytes
        )


class SourceReader:
    """For one thread. What arrives is kept until ``take_arrived``; positions are the caller's to move."""

    def __init__(
        self,
        cluster: ClusterPlan,
        loop: IoLoop,
        *,
        client_id: str,
        rack: str,
        quota: BrokerQuota,
        connections: int = 1,
        first_bytes: int = MOST_BYTES,
        pace_seconds: float = FETCH_PACE_SECONDS,
    ) -> None:
        """``connections`` to each broker share its partitions, each with a fetch of its own.

        Fetches are as large as a connection carries in a second; ``first_bytes`` until that is known.
        """
        self.brokers = loop.brokers(
            cluster, client_id=client_id, on_frame=self.on_frame, on_lost=self.on_lost
        )
        self.quota = quota
        self._subject = f"cluster:{cluster.alias}"
        self._client_id = client_id
        self._rack = rack
        self._first_bytes = first_bytes
        self._pace = pace_seconds
        self._bytes: dict[int, int] = {}
        self._first: dict[int, int] = {}
        self._ask_at: dict[int, float] = {}
        self.readings = Readings(self.brokers.leaders, connections=connections)
        self._questions: dict[int, _Question] = {}
        self._sessions: dict[int, FetchSession] = {}
        self._fetches: dict[int, _Fetch] = {}
        self._frames: deque[tuple[_Fetch, int, Frame]] = deque()
        self._correlation = 0

    def read_from(self, key: Key, offset: int, last_epoch: int) -> None:
        """Reads a partition from an offset on, whatever was read of it before."""
        self.readings.put(key, offset, last_epoch)
        self.brokers.leaders.follow([key[0]])

    @property
    def waiting(self) -> bool:
        """Whether answers have come that nobody has taken."""
        return bool(self._frames)

    @property
    def reached(self) -> bool:
        """Whether a broker answers for every partition that is read."""
        seen = self.brokers.leaders.seen
        return self.brokers.failure is None and all(key in seen.leaders for key in self.readings)

    def seconds_to_ask(self, now: float) -> float:
        """Until a connection may be asked that waits after a small answer, or for a quota; infinite where none does."""
        paced = min((at - now for at in self._ask_at.values() if at > now), default=float("inf"))
        return min(paced, self.quota.seconds_held(now))

    def pump(self, now: float, *, fetch_bytes: int, partition_bytes: int) -> None:
        """Sends every broker its next fetch, where it has none and something is to be read of it."""
        # Asked before its last answer is taken in, a broker would see that epoch of the session again and void it.
        busy = {*self._fetches, *(node for _, node, _ in self._frames)}
        for node, wanted in self.readings.by_node(now).items():
            if node in busy or now < max(self._ask_at.get(node, 0.0), self.quota.until(node)):
                continue
            channel = self.brokers.channel(node, now)
            if channel is None:
                continue
            version = min(WITH_IDS, self.brokers.versions[node].get(API_KEY, (0, WITH_NAMES))[1])
            most = min(fetch_bytes, self.quota.most_bytes, self._size(node))
            question = self._question(node, wanted, version, min(most, partition_bytes))
            session = self._sessions.setdefault(node, FetchSession())
            delta = session.ask(question.wanted)
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
            self._fetches[node] = _Fetch(
                self._correlation, now, most, question, self.brokers.received_bytes(node)
            )
            self.brokers.send(node, channel, [frame])

    def look(self, now: float) -> None:
        """Gives up on brokers that owe an answer and send nothing of it for too long."""
        for node in self.quota.take_overdue(now):
            self.brokers.lose(
                node,
                HeldBackError("a quota of the source holds a connection back", remedy=RAISE_QUOTA),
            )
        for node, fetch in list(self._fetches.items()):
            if not fetch.is_slow(now):
                continue
            received_bytes = self.brokers.received_bytes(node)
            if received_bytes != fetch.received_bytes:
                fetch.received_bytes, fetch.heard_at = received_bytes, now
            if fetch.silent_seconds(now) > ANSWER_SECONDS:
                # The line may carry less than that: what it has of an answer is lost with the connection.
                self._first[node] = max(LEAST_FETCH_BYTES, fetch.most_bytes // 4)
                self.brokers.lose(node, _silent("the source", ANSWER_SECONDS))

    def arriving(self, now: float) -> frozenset[Key]:
        """Partitions of which an answer is late and on its way: what is read anew now would come later still."""
        return frozenset(
            key
            for fetch in self._fetches.values()
            if fetch.is_slow(now) and now - fetch.heard_at <= ANSWER_SECONDS
            for key in fetch.question.partitions()
        )

    def failing(self, now: float) -> list[Key]:
        """Partitions that no leader has answered for in FAILING_SECONDS, and of which nobody is asked just now."""
        failing = self.readings.failing(now)
        if failing:
            asked = {key for fetch in self._fetches.values() for key in fetch.question.partitions()}
            failing = [key for key in failing if key not in asked]
        return failing

    def on_frame(self, node: int, frame: Frame) -> None:
        """A broker has answered; what it says is looked at when the caller takes it."""
        fetch = self._fetches.pop(node, None)
        if fetch is None or fetch.correlation != frame.correlation:
            raise UnreachableError(
                "a broker of the source answers what was not asked", subject=self._subject
            )
        self._frames.append((fetch, node, frame))

    def on_lost(self, node: int) -> None:
        """The connection is gone, and with it the fetch session."""
        self.quota.lost(node)
        for known in (self._fetches, self._sessions, self._questions, self._bytes, self._ask_at):
            known.pop(node, None)
        self.readings.lost(node)

    def take_arrived(self, now: float) -> list[Arrived]:
        """What has come of partitions that still stand where they stood when it was asked for.

        Raises:
            StoredFormatError: a response cannot be read.
        """
        arrived: list[Arrived] = []
        while self._frames:
            fetch, node, frame = self._frames.popleft()
            self._measure(fetch, node, len(frame.body), now)
            paced = len(frame.body) < SMALL_ANSWER_BYTES
            self._ask_at[node] = fetch.asked_at + self._pace if paced else 0.0
            asked = fetch.question.asked
            try:
                answer = decode_fetch(frame.body, version=fetch.question.version)
            except StoredFormatError as error:
                error.subject = self._subject  # of none the target is taken for the cause
                raise
            self.quota.answered(
                node, answer.throttle_ms / 1000, used_bytes=len(frame.body), now=now
            )
            session = self._sessions.get(node)
            if session is not None:
                session.answered(answer.error, answer.session_id)
            if answer.error:
                for reading, _ in asked.values():
                    self.readings.retry_later(reading, now)
            else:
                # A broker names every partition that it cannot read, whatever it named before.
                refused = {(part.topic, part.partition) for part in answer.parts if part.error}
                self.readings.answered(
                    reading for name, (reading, _) in asked.items() if name not in refused
                )
            if answer.parts:
                self._questions.pop(node, None)  # positions move on
            for part in answer.parts:
                found = asked.get((part.topic, part.partition))
                if found is None:
                    continue
                reading, offset = found
                if self.readings.get(reading.key) is reading and reading.offset == offset:
                    frame.buffer.hold()
                    arrived.append(Arrived(reading, part, frame.buffer))
            frame.buffer.release()
        return arrived

    def _size(self, node: int) -> int:
        """Of a connection's next fetch, as far as the line decides it."""
        return self._bytes.get(node, self._first.get(node, self._first_bytes))

    def _measure(self, fetch: _Fetch, node: int, size: int, now: float) -> None:
        if 2 * size >= fetch.most_bytes:  # what is smaller says more of the topic than of the line
            self._bytes[node] = fetch_bytes_at(size, now - fetch.asked_at)

    def _question(
        self, node: int, readings: Sequence[Reading], version: int, partition_bytes: int
    ) -> _Question:
        """The last one again where nothing has come since: most connections of most lanes rest."""
        last = self._questions.get(node)
        if last is not None and last.still(readings, version, partition_bytes):
            return last
        seen = self.brokers.leaders.seen
        made = _Question(readings, version, partition_bytes)
        for reading in readings:
            topic, partition = reading.key
            name = topic if version < WITH_IDS else seen.topic_ids[topic], partition
            made.wanted[name] = Wanted(
                reading.offset, seen.leaders[reading.key][1], reading.last_epoch, partition_bytes
            )
            made.asked[name] = (reading, reading.offset)
        self._questions[node] = made
        return made


def _silent(who: str, seconds: float) -> UnreachableError:
    return UnreachableError(
        f"a broker of {who} did not answer within {seconds:g} seconds",
        remedy="Check that the brokers run and that nothing between here and them swallows data.",
    )
