"""Applications that write orders: keys, headers, tombstones; every record is put on record.

Each record carries an id of its own in a header, so that the verdict can tell every copy of it.
"""

import json
import random
import threading
import time
from typing import NamedTuple

from replicator.demo.scenario import TOPIC
from replicator.kafka.client import KafkaError, Message, Producer, open_producer
from replicator.kafka.settings import producer_config
from replicator.testing.history import (
    ID_HEADER,
    Completed,
    Event,
    Outcome,
    Sent,
    digest,
    digest_headers,
)
from replicator.topology.plan import ClusterPlan

RECORDS_PER_SECOND = 250
CUSTOMERS = 40
_TICK_SECONDS = 0.02
_FLUSH_SECONDS = 15.0


class Order(NamedTuple):
    """One record before it is written."""

    id: str
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]


class Writer(threading.Thread):
    """Writes to one cluster at a steady rate until stopped."""

    def __init__(self, cluster: ClusterPlan, *, seed: int) -> None:
        super().__init__(name=f"writer-{cluster.alias}", daemon=True)
        self.events: list[Event] = []
        self.acknowledged = 0
        self._cluster = cluster
        self._random = random.Random(seed)  # noqa: S311 # made-up orders, no secrets
        self._stopping = threading.Event()

    def run(self) -> None:
        """Writes what is due, then sleeps a tick."""
        alias = str(self._cluster.alias)
        producer = open_producer(producer_config(self._cluster, client_id=f"demo-{alias}"))
        started = time.monotonic()
        written = 0
        while not self._stopping.wait(_TICK_SECONDS):
            due = int((time.monotonic() - started) * RECORDS_PER_SECOND)
            for number in range(written, due):
                self._write(producer, make_order(alias, number, self._random))
            written = due
            producer.poll(0)
        producer.flush(_FLUSH_SECONDS)

    def stop(self) -> None:
        """Stops writing and waits for the last acknowledgements; a second call does nothing."""
        self._stopping.set()
        if self.is_alive():
            self.join(_FLUSH_SECONDS + 5.0)

    def _write(self, producer: Producer, order: Order) -> None:
        now_ms = int(time.time() * 1000)
        self.events.append(
            Sent(
                id=order.id,
                cluster=str(self._cluster.alias),
                topic=TOPIC,
                partition=None,
                key=digest(order.key),
                value=digest(order.value),
                headers=digest_headers(order.headers),
                timestamp_ms=now_ms,
                transaction=None,
                epoch=None,
                at=time.monotonic(),
            )
        )

        def done(error: KafkaError | None, message: Message) -> None:
            self._completed(order.id, error, message)

        producer.produce(
            TOPIC,
            value=order.value,
            key=order.key,
            headers=list(order.headers),
            timestamp=now_ms,
            on_delivery=done,
        )

    def _completed(self, record_id: str, error: KafkaError | None, message: Message) -> None:
        # A failed idempotent write may have reached the log before its answer was lost.
        outcome: Outcome = "ok" if error is None else "unknown"
        self.acknowledged += error is None
        self.events.append(
            Completed(
                id=record_id,
                outcome=outcome,
                partition=message.partition() if error is None else None,
                offset=message.offset() if error is None else None,
                at=time.monotonic(),
            )
        )


def make_order(cluster: str, number: int, chance: random.Random) -> Order:
    """An order, an update without a key, or a deletion.

    Args:
        cluster: where it is written, part of its id.
        number: counts up per writer.
        chance: seeded, so that two runs write the same.
    """
    record_id = f"{cluster}-{number}"
    headers: list[tuple[str, bytes | None]] = [(ID_HEADER, record_id.encode())]
    if number % 3 == 0:
        headers += [("trace", b"%016x" % chance.getrandbits(64)), ("note", None)]
    key = b"customer-%d" % chance.randrange(CUSTOMERS)
    if number % 50 == 49:
        return Order(record_id, key, None, headers)  # a tombstone
    order = {"order": number, "shop": cluster, "cents": chance.randrange(100, 100_000)}
    value = json.dumps(order, separators=(",", ":")).encode()
    return Order(record_id, None if number % 10 == 7 else key, value, headers)
