"""Records the client library cannot show or carry, against a real broker."""

import pytest

from replicator.errors import NotFoundError, SourceDataLostError, UnreachableError
from replicator.kafka.clients.client import ClientPartition, open_consumer, open_producer
from replicator.kafka.clients.settings import consumer_config, producer_config
from replicator.topology.plan import ClusterPlan
from replicator.wire.probes.broker_versions import broker_versions, require_supported
from replicator.wire.records.record_batch import RawRecord
from replicator.wire.requests.fetch_one import fetch_record, fetch_record_bytes, record_from_bytes
from replicator.wire.requests.produce_one import produce_record


@pytest.fixture
def cluster(east) -> ClusterPlan:
    return ClusterPlan("east", tuple(east.bootstrap_servers))


@pytest.fixture
def topic(east, unique) -> str:
    # Some of the records here have a time of 0, which retention would remove at once.
    east.create_topic(unique, partitions=2, config={"retention.ms": "-1"})
    return unique


ODD = RawRecord(
    0,
    0,
    "CreateTime",
    b"key",
    None,
    ((b"\xff\xfe", b"1"), (b"a\x00b", None), (b"", b""), (b"x", b"")),
)


def test_a_record_the_client_library_cannot_show_is_kept_byte_for_byte(cluster, topic):
    produce_record(cluster, topic, 1, ODD)
    offset = produce_record(cluster, topic, 1, ODD)

    assert offset == 1
    fetched = fetch_record(cluster, topic, 1, offset)
    assert fetched == RawRecord(1, 0, "CreateTime", b"key", None, ODD.headers)
    kept = fetch_record_bytes(cluster, topic, 1, offset, timeout_seconds=10)
    assert record_from_bytes(kept) == fetched


def test_the_client_library_really_cannot_show_it(cluster, topic):
    produce_record(cluster, topic, 0, ODD)
    consumer = open_consumer(consumer_config(cluster, client_id="test", group_id="none"))
    consumer.assign([ClientPartition(topic, 0, 0)])
    message = consumer.poll(10)

    assert message.key() == b"key"
    with pytest.raises(SystemError):
        message.headers()
    consumer.close()


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_one_record_is_taken_out_of_a_compressed_batch(cluster, topic, codec):
    producer = open_producer(
        producer_config(cluster, client_id="test", compression=codec, linger_seconds=0.2)
    )
    for number in range(500):
        producer.produce(topic, b"value-%d" % number, b"k", 0, timestamp=1000 + number)
    producer.flush(10)

    record = fetch_record(cluster, topic, 0, 321)

    assert (record.offset, record.value, record.timestamp) == (321, b"value-321", 1321)


def test_a_transaction_marker_is_no_record(cluster, topic):
    producer = open_producer(producer_config(cluster, client_id="test", transactional_id=topic))
    producer.init_transactions(10)
    producer.begin_transaction()
    producer.produce(topic, b"v", b"k", 0)
    producer.commit_transaction(10)

    assert fetch_record(cluster, topic, 0, 0).value == b"v"
    with pytest.raises(NotFoundError, match="no record"):
        fetch_record(cluster, topic, 0, 1)


def test_offsets_and_partitions_that_are_not_there_are_named(cluster, topic):
    with pytest.raises(SourceDataLostError, match=f"{topic}/0 at 77"):
        fetch_record(cluster, topic, 0, 77)
    with pytest.raises(NotFoundError, match="no such partition"):
        fetch_record(cluster, topic, 9, 0)
    with pytest.raises(NotFoundError, match=f"{topic}.missing"):
        produce_record(cluster, f"{topic}.missing", 0, ODD, timeout_seconds=3)


def test_a_current_broker_has_everything_we_need(cluster):
    require_supported(cluster)
    assert broker_versions(cluster)[1][1] >= 12


def test_the_second_bootstrap_server_is_asked_when_the_first_is_down(cluster):
    require_supported(ClusterPlan("east", ("127.0.0.1:1", *cluster.bootstrap_servers)))
    with pytest.raises(UnreachableError, match=r"127\.0\.0\.1:1"):
        require_supported(ClusterPlan("nowhere", ("127.0.0.1:1",)), timeout_seconds=1)
