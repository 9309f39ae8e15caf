"""What lanes rely on of a producer and a consumer: shown of the real clients, and of the fakes.

The fakes (``tests/support/fake_kafka.py``) stand in for brokers in unit tests; each sentence here holds
for both, so a unit test on a fake says something about Kafka.
"""

import pytest
from fake_kafka import FakeCluster, FakeConsumer, FakeProducer
from simulated_kafka import Calm, SimulatedCluster, SimulatedProducer

from replicator.kafka.admin.admin import ClusterAdmin
from replicator.kafka.clients import codes
from replicator.kafka.clients.client import (
    ClientPartition,
    KafkaError,
    KafkaException,
    open_consumer,
    open_producer,
)
from replicator.kafka.clients.settings import consumer_config, producer_config
from replicator.kafka.logs.coordinator_watch import CoordinatorWatch
from replicator.testing import wait_until
from replicator.topology.plan import ClusterPlan

PATIENCE_SECONDS = 60.0
LIMIT = 2000


class Fakes:
    """Clients of a cluster in memory."""

    def __init__(self) -> None:
        self._cluster = FakeCluster()

    def topic(self, *, partitions: int = 1) -> str:
        self._cluster.create_topic("t", partitions=partitions, limit=LIMIT)
        return "t"

    def producer(self, *, name: str | None = None, on_delivery=None, queue: int = 1000):
        return FakeProducer(
            self._cluster, transactional_id=name, on_delivery=on_delivery, queue_records=queue
        )

    def consumer(self):
        return FakeConsumer(self._cluster)

    def settle(self, topic: str, partitions: int) -> None:
        """A transaction has ended here when the call that ends it returns."""

    def close(self) -> None:
        pass


class Simulated(Fakes):
    """Clients of the cluster that simulated schedules run on, in calm weather."""

    def __init__(self) -> None:
        self._cluster = SimulatedCluster()

    def producer(self, *, name: str | None = None, on_delivery=None, queue: int = 1000):
        return SimulatedProducer(
            self._cluster, Calm(), watch=CoordinatorWatch(),
            transactional_id=name, on_delivery=on_delivery, queue_records=queue,
        )  # fmt: skip


class RealClients:
    """Clients of a real cluster, set up as a lane's are."""

    def __init__(self, cluster, unique: str) -> None:
        self._cluster = cluster
        self._unique = unique
        self._plan = ClusterPlan("east", tuple(cluster.bootstrap_servers))
        self._consumers = []

    def topic(self, *, partitions: int = 1) -> str:
        # The records are from long ago; retention must not take them away.
        config = {"max.message.bytes": str(LIMIT), "retention.ms": "-1"}
        self._cluster.create_topic(self._unique, partitions=partitions, config=config)
        return self._unique

    def producer(self, *, name: str | None = None, on_delivery=None, queue: int = 1000):
        settings = producer_config(
            self._plan, client_id="contract", transactional_id=name and f"{self._unique}-{name}"
        )
        reports = {} if on_delivery is None else {"on_delivery": on_delivery}
        return open_producer(
            {
                **settings,
                **reports,
                "message.max.bytes": 1_000_000,
                "queue.buffering.max.messages": queue,
                "delivery.report.only.error": name is None,
                "linger.ms": 20,
            }
        )

    def consumer(self):
        settings = consumer_config(self._plan, client_id="contract", group_id=self._unique)
        self._consumers.append(open_consumer(settings))
        return self._consumers[-1]

    def settle(self, topic: str, partitions: int) -> None:
        """Waits for the markers: a coordinator answers when it knows the end, and writes them then."""
        places = [(topic, number) for number in range(partitions)]
        with ClusterAdmin(self._plan, client_id="contract") as admin:
            wait_until(
                lambda: (
                    admin.every_offset(places, "latest")
                    == admin.every_offset(places, "latest", isolation="read_uncommitted")
                ),
                timeout_seconds=PATIENCE_SECONDS,
                describe=lambda: f"a transaction is open in {topic}",
            )

    def close(self) -> None:
        for consumer in self._consumers:
            consumer.close()


@pytest.fixture(params=["fake", "simulated", pytest.param("real", marks=pytest.mark.integration)])
def kafka(request):
    if request.param == "fake":
        clients = Fakes()
    elif request.param == "simulated":
        clients = Simulated()
    else:
        east, unique = (request.getfixturevalue(name) for name in ("east", "unique"))
        clients = RealClients(east, unique)
    yield clients
    clients.close()


def begun(kafka, name="writer", **options):
    """A producer inside its first transaction."""
    producer = kafka.producer(name=name, **options)
    producer.init_transactions(PATIENCE_SECONDS)
    producer.begin_transaction()
    return producer


def produce(producer, topic, *values, partition=0, callback=None, headers=None):
    for value in values:
        producer.produce(topic, value, b"k", partition, callback, None, 1_700_000_000_000, headers)


def reading(kafka, topic, *, offset=0, partitions=1, settled=True):
    """A consumer at an offset; no transaction is open unless the test wants one to be."""
    if settled:
        kafka.settle(topic, partitions)
    consumer = kafka.consumer()
    consumer.incremental_assign(
        [ClientPartition(topic, number, offset) for number in range(partitions)]
    )
    return consumer


def read(consumer, *, ends=1):
    """Records until the end of each partition was reported so often, and the offsets of the ends."""
    records, found = [], []

    def at_the_ends():
        for message in consumer.consume(100, 0.1):
            if message.error() is None:
                records.append(message)
            else:
                assert message.error().code() == codes.PARTITION_EOF
                found.append(message.offset())
        return len(found) >= ends

    wait_until(at_the_ends, timeout_seconds=PATIENCE_SECONDS, describe=lambda: f"ends: {found}")
    return records, found


def values(consumer, **options):
    return [message.value() for message in read(consumer, **options)[0]]


def code_of(call, *arguments):
    with pytest.raises(KafkaException) as raised:
        call(*arguments)
    return raised.value.args[0]


def test_records_come_back_whole_in_order_and_then_the_end_of_the_partition(kafka):
    topic = kafka.topic()
    producer = begun(kafka)
    produce(producer, topic, b"a", b"", None, headers={"h": "x"})
    producer.produce(topic, b"d", None, 0, None, None, 1_700_000_000_001, [("h", None)])
    producer.commit_transaction(PATIENCE_SECONDS)

    records, ends = read(reading(kafka, topic))
    assert [(each.offset(), each.key(), each.value()) for each in records] == [
        (0, b"k", b"a"), (1, b"k", b""), (2, b"k", None), (3, None, b"d"),
    ]  # fmt: skip
    assert [each.headers() for each in records] == [[("h", b"x")]] * 3 + [[("h", None)]]
    assert records[0].timestamp() == (1, 1_700_000_000_000)
    assert records[0].leader_epoch() == 0
    assert ends == [5]  # behind the commit marker


def test_an_open_transaction_is_hidden_and_an_aborted_one_is_skipped(kafka):
    topic = kafka.topic()
    producer = begun(kafka)
    produce(producer, topic, b"aborted")
    assert producer.flush(PATIENCE_SECONDS) == 0
    consumer = reading(kafka, topic, settled=False)
    assert read(consumer) == ([], [0])
    producer.abort_transaction(PATIENCE_SECONDS)
    producer.begin_transaction()
    produce(producer, topic, b"committed")
    producer.commit_transaction(PATIENCE_SECONDS)

    again = reading(kafka, topic)
    assert values(again) == [b"committed"]


def test_a_delivery_report_names_the_offset_before_the_transaction_is_committed(kafka):
    topic = kafka.topic()
    producer = begun(kafka)
    reported = []
    produce(producer, topic, b"a", b"b",
            callback=lambda error, message: reported.append((error, message.offset())))  # fmt: skip
    assert len(producer) >= 2  # what the client has to say beside them counts too
    assert producer.flush(PATIENCE_SECONDS) == 0
    assert reported == [(None, 0), (None, 1)]
    assert len(producer) == 0
    producer.abort_transaction(PATIENCE_SECONDS)


def test_a_full_queue_raises_and_has_room_again_after_a_flush(kafka):
    topic = kafka.topic()
    producer = begun(kafka, queue=2)
    produce(producer, topic, b"a", b"b")
    with pytest.raises(BufferError):
        produce(producer, topic, b"c")
    assert producer.flush(PATIENCE_SECONDS) == 0
    produce(producer, topic, b"c")
    producer.commit_transaction(PATIENCE_SECONDS)
    assert values(reading(kafka, topic)) == [b"a", b"b", b"c"]


def test_a_transaction_with_a_refused_record_can_only_be_aborted(kafka):
    topic = kafka.topic()
    producer = begun(kafka)
    failures = []
    produce(producer, topic, b"x" * (LIMIT + 500),
            callback=lambda error, _: failures.append(error.code()))  # fmt: skip
    producer.flush(PATIENCE_SECONDS)
    assert failures == [KafkaError.MSG_SIZE_TOO_LARGE]
    assert code_of(producer.begin_transaction).txn_requires_abort()
    assert code_of(producer.commit_transaction, PATIENCE_SECONDS).txn_requires_abort()
    producer.abort_transaction(PATIENCE_SECONDS)

    # librdkafka (2.16) counts on behind a refused record: the next transaction may fail once for that.
    for attempt in range(2):
        producer.begin_transaction()
        produce(producer, topic, b"next")
        try:
            producer.commit_transaction(PATIENCE_SECONDS)
        except KafkaException:
            assert attempt == 0
            producer.abort_transaction(PATIENCE_SECONDS)
        else:
            break
    assert values(reading(kafka, topic)) == [b"next"]


def test_a_transaction_is_begun_once_and_committed_only_when_open(kafka):
    producer = begun(kafka)
    refused = code_of(producer.begin_transaction)
    assert refused.code() == codes.ERRONEOUS_STATE
    assert not refused.txn_requires_abort()
    producer.commit_transaction(PATIENCE_SECONDS)  # an empty one is committed like any other


def test_the_next_owner_of_a_transactional_id_aborts_what_was_open_and_fences_the_last(kafka):
    topic = kafka.topic()
    first = begun(kafka)
    produce(first, topic, b"never")
    assert first.flush(PATIENCE_SECONDS) == 0
    second = begun(kafka)
    produce(second, topic, b"second")
    second.commit_transaction(PATIENCE_SECONDS)

    assert code_of(first.commit_transaction, PATIENCE_SECONDS).fatal()
    assert values(reading(kafka, topic)) == [b"second"]


def test_without_transactions_only_failures_are_reported(kafka):
    topic = kafka.topic()
    failures = []
    producer = kafka.producer(on_delivery=lambda error, _: failures.append(error.code()))
    for value in (b"fits", b"x" * (LIMIT + 500), b"fits too"):
        producer.produce(topic, value, None, 0, None)
        assert producer.flush(PATIENCE_SECONDS) == 0
    assert failures == [KafkaError.MSG_SIZE_TOO_LARGE]
    assert values(reading(kafka, topic)) == [b"fits", b"fits too"]


def test_reading_begins_where_it_is_assigned_and_again_where_it_is_sought(kafka):
    topic = kafka.topic()
    producer = begun(kafka)
    produce(producer, topic, b"0", b"1", b"2")
    producer.commit_transaction(PATIENCE_SECONDS)

    consumer = reading(kafka, topic, offset=1)
    assert values(consumer) == [b"1", b"2"]
    consumer.seek(ClientPartition(topic, 0, 2))
    assert values(consumer) == [b"2"]


def test_the_position_is_behind_the_last_record_and_its_marker_with_the_epoch(kafka):
    topic = kafka.topic()
    producer = begun(kafka)
    produce(producer, topic, b"0", b"1")
    producer.commit_transaction(PATIENCE_SECONDS)

    consumer = reading(kafka, topic)
    (before,) = consumer.position([ClientPartition(topic, 0)])
    assert before.offset < 0
    read(consumer)
    (after,) = consumer.position([ClientPartition(topic, 0)])
    assert (after.offset, after.leader_epoch) == (3, 0)
    low, high = consumer.get_watermark_offsets(ClientPartition(topic, 0), cached=True)
    assert (low, high) == (0, 3)


def test_nothing_is_read_of_a_partition_that_is_paused_or_no_longer_assigned(kafka):
    topic = kafka.topic(partitions=3)
    producer = begun(kafka)
    for partition in range(3):
        produce(producer, topic, b"%d" % partition, partition=partition)
    producer.commit_transaction(PATIENCE_SECONDS)

    consumer = reading(kafka, topic, partitions=3)
    consumer.pause([ClientPartition(topic, 1)])
    consumer.incremental_unassign([ClientPartition(topic, 2)])
    assert values(consumer) == [b"0"]
    consumer.resume([ClientPartition(topic, 1)])
    assert values(consumer) == [b"1"]
