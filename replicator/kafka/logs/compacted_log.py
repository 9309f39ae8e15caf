"""Reading compacted topics: to the end, and on and on.

The end of a partition is what the broker calls its last stable offset, and is recognised by the
library's end-of-partition event, not by counting: the last offsets may be transaction markers,
which no consumer ever sees.
"""

# ruff: noqa: SLF001 - librdkafka begins the names of its local errors with an underscore

import time
from collections.abc import Iterable, Mapping
from typing import Self

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from replicator.errors import NotFoundError, ReplicatorError
from replicator.kafka.clients.client import open_consumer
from replicator.kafka.clients.errors import ConnectionTrouble, map_kafka_error
from replicator.kafka.clients.lost_brokers import LostBrokers
from replicator.kafka.clients.opened_with import OpenedWith
from replicator.kafka.clients.settings import consumer_config
from replicator.kafka.logs.topic_lookup import (
    HEARD_SECONDS,
    TOLD_SECONDS,
    OnWait,
    wait_until_known,
)
from replicator.kafka.logs.unread_end import UnreadPart, unread_error
from replicator.topology.plan import ClusterPlan

Entry = tuple[bytes, bytes | None]
"""A key and its value; None takes the key away."""

_BATCH = 2000
_STEP_SECONDS = 0.1
_CONNECT_SECONDS = 1.0

_ELSEWHERE_SECONDS = 0.5
"""How long a broker that shows less than is known to be there is given, before another one is asked."""

LOAD_WAIT_SECONDS = 0.01
"""How long a broker holds a fetch that finds nothing while a topic is read to its end: that it is the
end is told after one such wait."""

AWAKE_WAIT_SECONDS, AWAKE_SECONDS = 0.05, 30.0
"""A tail that was loaded goes on with the same consumer for a while: most happens then, and another one
would take a moment to connect. Only after that it waits as patiently as it was asked to."""


class LogTail:
    """Follows some partitions of a compacted topic from the start; for one thread.

    Offsets that are gone (compacted away, or a recreated topic) are never an error here: the
    reader goes on from the oldest record there is, because only last values matter.

    A record ends the wait at the broker at once. ``fetch_wait_seconds`` is how long silence is waited
    out in ``poll``: each wait costs a little on both sides, and the end behind a transaction's marker
    is only told after one.
    """

    def __init__(
        self,
        cluster: ClusterPlan,
        topic: str,
        partitions: Iterable[int] = (0,),
        *,
        client_id: str,
        fetch_wait_seconds: float = LOAD_WAIT_SECONDS,
    ) -> None:
        self.topic = topic
        self._cluster = cluster
        self._client_id = client_id
        self._subject = f"cluster:{cluster.alias}"
        self._trouble = ConnectionTrouble()
        self._partitions = tuple(partitions)
        self.fetch_wait_seconds = fetch_wait_seconds
        """May be changed between polls."""
        self._places = dict.fromkeys(self._partitions, 0)
        self._opened: tuple[float, Consumer] | None = None
        self._opened_with: OpenedWith | None = None
        self._lost_brokers = LostBrokers(topic)
        self._awake_until = 0.0
        self._started = False
        self._ended: set[int] = set()
        self.position = 0
        """Where the last partition that was heard of goes on; meant for topics of one partition."""
        self._past_open_transactions = False
        self._ends: dict[int, int] = {}
        self._held: dict[int, int] = {}
        self._reaches: dict[int, int] = {}
        self._values: dict[int, dict[bytes, bytes]] = {number: {} for number in self._partitions}

    def load(
        self,
        *,
        timeout_seconds: float,
        past_open_transactions: bool = False,
        known_to_exist: bool = False,
        on_wait: OnWait = lambda _: None,
        reaches: Mapping[int, int] | None = None,
    ) -> dict[int, dict[bytes, bytes]]:
        """Reads from the start to the end of every partition; call it before ``poll``.

        Called again, it reads on to the end as it is then.

        Without ``past_open_transactions`` the end is where the oldest open transaction begins, with it where the
        log ended when that place was first reached. ``on_wait`` is told every few seconds why the end is not
        reached yet. ``known_to_exist`` as ``read_compacted`` has it. ``reaches`` are offsets up to which partitions are
        known to go: a broker that shows less is none that leads them now, and another one is asked.

        Returns:
            The last value of every key, for each partition.

        Raises:
            UnreachableError: the end was not reached in time.
            ReplicatorError: the topic cannot be read, see its class.
        """
        state = self._values
        deadline = time.monotonic() + timeout_seconds
        self._past_open_transactions = past_open_transactions
        self._open(self._awake_wait)
        self._ended.clear()
        self._ends.clear()
        self._held.clear()
        self._reaches = dict(reaches or {})
        again = self._started
        heard_at = time.monotonic() + (HEARD_SECONDS if known_to_exist else 0.0)
        self._start(timeout_seconds, on_wait, heard_at=heard_at)
        if again:
            self._assign()  # or an end that was told is not told again
        began = time.monotonic()
        tell_at, elsewhere_at = began + TOLD_SECONDS, began + _ELSEWHERE_SECONDS
        while len(self._ended) < len(self._partitions):
            now = time.monotonic()
            left = deadline - now
            if left <= 0:
                raise self._late(timeout_seconds)
            if now >= tell_at:
                tell_at = now + TOLD_SECONDS
                on_wait(self._late(round(now - began)))
                self._open(self._awake_wait)  # anew where its client has lost its brokers
            if now >= elsewhere_at and self._behind():
                elsewhere_at = now + _ELSEWHERE_SECONDS
                self.close()  # another client meets another broker first
                self._open(self._awake_wait)
            try:
                self._start(left, on_wait, heard_at=heard_at)
                taken = self._take(min(left, _STEP_SECONDS))
            except NotFoundError:
                if now >= heard_at:
                    raise
                self._started = False  # the client asked another broker, which has not heard of it
                continue
            for message in taken:
                _keep(state[message.partition() or 0], message)
        self.awaken()
        return state

    def poll(self, timeout_seconds: float) -> list[Entry]:
        """New entries since the last call, in the order of each partition; empty when none came.

        Waits for the first one only; a first call may take a second to connect. Without a ``load``
        before, it begins with the oldest.

        Raises:
            ReplicatorError: the topic cannot be read; retriable ones go away by themselves, and the
                tail is still at its place.
        """
        return [entry for part in self.poll_partitions(timeout_seconds).values() for entry in part]

    def poll_partitions(self, timeout_seconds: float) -> dict[int, list[Entry]]:
        """The same by partition."""
        awake = time.monotonic() < self._awake_until
        self._open(self._awake_wait if awake else self.fetch_wait_seconds)
        self._start(max(timeout_seconds, _CONNECT_SECONDS))
        found: dict[int, list[Entry]] = {}
        for message in self._take(timeout_seconds):
            if (key := message.key()) is not None:
                found.setdefault(message.partition() or 0, []).append((key, message.value()))
        return found

    def awaken(self) -> None:
        """Waits less in polls for a while, as after ``load``: more is expected to come."""
        self._awake_until = time.monotonic() + AWAKE_SECONDS

    def close(self) -> None:
        """Gives the connections back; closing twice is closing once."""
        if self._opened is not None:
            self._opened[1].close()
        self._opened = None
        self._started = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def _awake_wait(self) -> float:
        return min(self.fetch_wait_seconds, AWAKE_WAIT_SECONDS)

    @property
    def _consumer(self) -> Consumer:
        if self._opened is None:
            raise RuntimeError("the tail is closed")
        return self._opened[1]

    def _open(self, wait_seconds: float) -> None:
        """Has a consumer that waits so long, logs in with what there is now and has brokers to ask."""
        if (
            self._opened is not None
            and self._opened[0] == wait_seconds
            and not (self._opened_with is not None and self._opened_with.outdated())
            and not self._lost_brokers.found(self._opened[1])
        ):
            return
        self.close()
        self._opened_with = OpenedWith(self._cluster)
        config = consumer_config(
            self._cluster,
            client_id=self._client_id,
            fetch_wait_seconds=wait_seconds,
            queue_bytes=16 * 1024 * 1024,
            on_error=self._trouble,
        )
        config["auto.offset.reset"] = "earliest"
        self._opened = (wait_seconds, open_consumer(config, subject=self._subject))
        self._lost_brokers.heard()

    def _start(
        self,
        timeout_seconds: float,
        on_wait: OnWait = lambda _: None,
        *,
        heard_at: float = 0.0,
    ) -> None:
        """Looks the topic up, then begins to fetch."""
        if self._started:
            return
        wait_until_known(
            self._consumer, self.topic, failure=self._failure, timeout_seconds=timeout_seconds,
            heard_at=heard_at, on_wait=on_wait,
        )  # fmt: skip
        self._assign()
        self._started = True

    def _assign(self) -> None:
        # Offset 0 needs no question to the broker; where it is gone, "earliest" takes over.
        self._consumer.assign(
            [TopicPartition(self.topic, number, at) for number, at in self._places.items()]
        )

    def _take(self, timeout_seconds: float) -> list[Message]:
        """Waits for one event, then takes what is there without waiting."""
        first = self._consumer.poll(timeout_seconds)
        if first is None:
            return []
        records: list[Message] = []
        for message in (first, *self._consumer.consume(_BATCH, 0)):
            error = message.error()
            if error is None:
                records.append(message)
                self._moved(message, (message.offset() or 0) + 1)
            elif error.code() == KafkaError._PARTITION_EOF:
                self._reached_end(message.partition() or 0, message.offset() or 0)
                self._moved(message, message.offset() or 0)
            elif not records:
                raise self._failure(error)
        return records

    def _moved(self, message: Message, position: int) -> None:
        self._lost_brokers.heard()
        self._places[message.partition() or 0] = self.position = position

    def _reached_end(self, number: int, stable: int) -> None:
        """The last stable offset was reached; the log itself may go on behind it."""
        if self._past_open_transactions and number not in self._ends:
            self._ends[number] = self._known_end(number)
        if stable >= max(self._ends.get(number, 0), self._reaches.get(number, 0)):
            self._ended.add(number)
        else:
            self._held[number] = stable

    def _behind(self) -> list[int]:
        """Partitions that end, by who leads them as far as this client knows, before they are known to."""
        return [
            number
            for number, end in self._reaches.items()
            if number not in self._ended and 0 <= self._known_end(number) < end
        ]

    def _failure(self, error: KafkaError) -> ReplicatorError:
        return map_kafka_error(
            error, subject=self._subject, doing=f"read {self.topic}", cause=self._trouble.cause()
        )

    def _late(self, seconds: float) -> ReplicatorError:
        """Why the end was not reached in so many seconds. Blocking, for a few."""
        cause = self._trouble.cause()
        leaders = self._leaders()
        behind = self._behind()
        held = next((each for each in self._held if each not in {*self._ended, *behind}), None)
        unread = [
            UnreadPart(
                number,
                self._places[number],
                self._ends.get(number, self._known_end(number)),
                leaders.get(number),
                None if number in behind else self._held.get(number),
                self._held_by(number) if number == held else "",
                self._reaches[number] if number in behind else -1,
            )
            for number in sorted(self._partitions, key=lambda each: each != held)
            if number not in self._ended
        ]
        return unread_error(
            self.topic, unread, seconds=seconds, subject=self._subject,
            beside=None if cause is None else self._failure(cause),
        )  # fmt: skip

    def _known_end(self, number: int) -> int:
        """The high watermark that was told last; negative where none was."""
        place = TopicPartition(self.topic, number)
        return int(self._consumer.get_watermark_offsets(place, cached=True)[1])

    def _leaders(self) -> dict[int, int]:
        """The broker that leads each partition, -1 where none does."""
        try:
            found = self._consumer.list_topics(self.topic, timeout=1.0).topics[self.topic]
        except KafkaException:
            return {}
        return {number: part.leader for number, part in found.partitions.items()}

    def _held_by(self, number: int) -> str:
        # Here, because the protocol's codec takes half a second to import.
        from replicator.wire.requests.open_transactions import who_holds

        return who_holds(self._cluster, (self.topic, number), client_id=self._client_id)


def _keep(values: dict[bytes, bytes], message: Message) -> None:
    """The last value of its key; a record without a value takes the key away."""
    key, value = message.key(), message.value()
    if key is None:
        return
    if value is None:
        values.pop(key, None)
    else:
        values[key] = value
