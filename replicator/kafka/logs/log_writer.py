"""Writing to a compacted topic so that a returned call is a kept promise."""

import time
from collections.abc import Iterable
from typing import Self

from confluent_kafka import KafkaError, KafkaException, Producer

from replicator.errors import NotFoundError, ReplicatorError
from replicator.identifiers import LOG_END_KEY
from replicator.kafka.clients import codes
from replicator.kafka.clients.client import open_producer
from replicator.kafka.clients.errors import as_kafka_error
from replicator.kafka.clients.opened_with import OpenedWith
from replicator.kafka.clients.settings import producer_config
from replicator.kafka.logs.compacted_log import Entry
from replicator.kafka.logs.producer_calls import ProducerWatch, produce_when_room
from replicator.kafka.logs.transactions import TransactionWriter
from replicator.topology.plan import ClusterPlan

_UNHEARD_SECONDS = 0.05


class LogWriter:
    """Writes entries to one topic; for one thread.

    With a ``transactional_id`` every ``write`` is one transaction, all or nothing, and only the
    owner who initialised that id last can write: an earlier one gets FencedError. After an
    UnknownOutcomeError the writer begins anew by itself at the next call; what became of the
    earlier entries must be read.
    """

    def __init__(
        self,
        cluster: ClusterPlan,
        topic: str,
        *,
        client_id: str,
        transactional_id: str | None = None,
        timeout_seconds: float = 15.0,
    ) -> None:
        self.topic = topic
        self._cluster = cluster
        self._client_id = client_id
        self._timeout_seconds = timeout_seconds
        self._doing = f"write to {topic}"
        self._transactions = (
            None
            if transactional_id is None
            else TransactionWriter(
                cluster, transactional_id, client_id=client_id, timeout_seconds=timeout_seconds
            )
        )
        self._watch = ProducerWatch(f"cluster:{cluster.alias}")
        self._producer: Producer | None = None
        self._opened_with = OpenedWith()

    def open(self) -> None:
        """Connects; with a transactional id this fences every earlier owner.

        ``write`` does it by itself; calling it first makes the moment of the take-over explicit.

        Raises:
            ReplicatorError: nothing was changed, or it is unknown; may be called again.
        """
        if self._transactions:
            self._transactions.open()
        else:
            self._plain()

    def end(self) -> int:
        """Where partition 0 of the topic ends, by a record without a value that is written to it.

        To be read as far as that is all that stands there, whatever a broker shows that is cut off from the others.

        Raises:
            ReplicatorError: nobody acknowledges the write.
        """
        # Here, because the protocol's codec takes half a second to import.
        from replicator.wire.requests.produce_one import end_by_a_write

        return end_by_a_write(
            self._cluster, self.topic, 0, key=LOG_END_KEY, timeout_seconds=self._timeout_seconds
        )

    def write(self, entries: Iterable[Entry], *, partition: int = 0) -> None:
        """Writes the entries in order and returns when they are stored.

        Raises:
            FencedError: another owner took over; nothing was written.
            UnknownOutcomeError: no answer; they may or may not be there.
            ReplicatorError: refused; nothing was written (without a transaction: not all).
        """
        wanted = list(entries)
        if not wanted:
            return
        if self._transactions:
            self._transactions.open()
            self._transactions.begin(self._doing)
            for key, value in wanted:
                self._transactions.add(self.topic, partition, key, value)
            self._transactions.commit()
        else:
            self._write_plainly(self._plain(), wanted, partition)

    def close(self) -> None:
        """Gives the connections back; an unfinished write is given up."""
        if self._transactions:
            self._transactions.close()
        producer, self._producer = self._producer, None
        if producer is not None:
            producer.purge()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _plain(self) -> Producer:
        """A producer without transactions that has seen the topic.

        A cluster that cannot be reached is found here, where nothing has been sent yet.
        """
        if self._producer is not None and not self._opened_with.outdated():
            return self._producer
        self._opened_with = OpenedWith(self._cluster)
        seconds = self._timeout_seconds
        config = producer_config(
            self._cluster,
            client_id=self._client_id,
            linger_seconds=0.0,
            on_delivery=self._watch.on_delivery,
            only_failed_deliveries=True,
            on_error=self._watch.trouble,
        )
        # Nobody waits longer than this for a write, and a late one must not overtake a newer one.
        config["message.timeout.ms"] = round(seconds * 1000)
        # An idempotent producer asks for its id first, and finding no broker yet it asks again
        # after half a second. One request at a time keeps order as well, and a repeated entry
        # of a compacted topic is the same entry.
        config["enable.idempotence"] = False
        config["topic.metadata.propagation.max.ms"] = min(3000, round(seconds * 1000))
        producer = open_producer(config, subject=f"cluster:{self._cluster.alias}")

        self._look_up(producer, unheard_ms=config["topic.metadata.propagation.max.ms"])
        self._producer = producer
        return producer

    def _look_up(self, producer: Producer, *, unheard_ms: int) -> None:
        """Waits until the client knows the topic; a broker may not have heard of a new one for so long."""
        heard_at = time.monotonic() + unheard_ms / 1000

        def look(timeout_seconds: float) -> None:
            topics = producer.list_topics(self.topic, timeout=timeout_seconds).topics
            if topics[self.topic].error is not None:
                raise KafkaException(topics[self.topic].error)

        while True:
            try:
                self._watch.until_done(producer, look, seconds=self._timeout_seconds)
            except KafkaException as error:
                mapped = self._watch.mapped(as_kafka_error(error), self._doing)
                if not isinstance(mapped, NotFoundError) or time.monotonic() >= heard_at:
                    raise mapped from error
                time.sleep(_UNHEARD_SECONDS)  # refused at once, and heard of without an event
            else:
                return

    def _write_plainly(self, producer: Producer, entries: list[Entry], partition: int) -> None:
        self._watch.refused.clear()
        deadline = time.monotonic() + self._timeout_seconds
        try:
            for key, value in entries:
                produce_when_room(producer, self.topic, value, key, partition)
            left = producer.flush(max(0.0, deadline - time.monotonic()) + 1.0)
        except KafkaException as error:
            raise self._unknown(as_kafka_error(error)) from error
        if self._watch.refused or left:
            raise self._unknown((*self._watch.refused, KafkaError(codes.TIMED_OUT))[0])
        self._watch.trouble.clear()

    def _unknown(self, error: KafkaError) -> ReplicatorError:
        """Drops the producer, whose state is spent, and maps the error."""
        self.close()
        return self._watch.mapped(error, self._doing, unknown=True)
