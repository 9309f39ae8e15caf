"""The data source ``replicator-kafka`` as users query it, against real brokers."""

import json
import time

import pytest
from confluent_kafka import Producer
from producing import produce
from topology_files import active_passive, write_topology

from replicator.errors import InputError, NotFoundError, ReplicatorError, SourceDataLostError
from replicator.spark.base.failures import spark_failures

NOW_MS = round(time.time() * 1000) - 3_600_000
"""Young enough that retention does not take the records of a test away."""


def write(cluster, topic, records, **settings):
    """Writes ``(key, value, partition, timestamp_ms, headers)``."""
    fields = ("key", "value", "partition", "timestamp", "headers")
    named = (dict(zip(fields, each, strict=True)) for each in records)
    produce(cluster, topic, named, settings=settings)


def plain(cluster, topic, count, partition=0, first_ms=NOW_MS):
    write(
        cluster, topic,
        [(b"k%d" % n, b"v%d" % n, partition, first_ms + n, None) for n in range(count)],
    )  # fmt: skip


def source(spark, cluster, **options):
    reader = spark.read.format("replicator-kafka")
    reader = reader.option("bootstrapServers", ",".join(cluster.bootstrap_servers))
    for name, value in options.items():
        reader = reader.option(name, value)
    return reader


def test_every_field_of_a_record_is_kept(spark, east, unique):
    east.create_topic(unique, partitions=2)
    headers = [("a", b"1"), ("a", None), ("b", b""), ("a", b"2")]
    write(
        east, unique,
        [(b"k", b"v", 0, NOW_MS + 123, headers), (None, b"", 1, NOW_MS, None),
         (b"", None, 1, NOW_MS + 1, [])],
    )  # fmt: skip
    rows = source(spark, east, subscribe=unique).load().orderBy("partition", "offset").collect()
    assert [(row.key, row.value) for row in rows] == [(b"k", b"v"), (None, b""), (b"", None)]
    assert [(each.key, each.value) for each in rows[0].headers] == headers
    assert rows[1].headers is None
    assert [row.timestampType for row in rows] == [0, 0, 0]
    assert round(rows[0].timestamp.timestamp() * 1000) == NOW_MS + 123
    assert [(row.topic, row.partition, row.offset) for row in rows] == [
        (unique, 0, 0), (unique, 1, 0), (unique, 1, 1),
    ]  # fmt: skip
    assert all(row.leaderEpoch >= 0 for row in rows)


def test_append_times_are_distinguished(spark, east, unique):
    east.create_topic(unique, partitions=1, config={"message.timestamp.type": "LogAppendTime"})
    plain(east, unique, 3)
    rows = source(spark, east, subscribe=unique).load().select("timestampType").collect()
    assert [row.timestampType for row in rows] == [1, 1, 1]


def test_ranges_and_times_are_read_exactly(spark, east, unique):
    east.create_topic(unique, partitions=2)
    plain(east, unique, 100, 0)
    plain(east, unique, 100, 1)
    frame = source(
        spark, east, subscribe=unique,
        startingOffsets=json.dumps({unique: {"0": 10, "1": -2}}),
        endingOffsets=json.dumps({unique: {"0": 20, "1": 5}}),
    ).load()  # fmt: skip
    found = {(row.partition, row.offset) for row in frame.select("partition", "offset").collect()}
    assert found == {(0, n) for n in range(10, 20)} | {(1, n) for n in range(5)}
    first = NOW_MS
    timed = source(
        spark, east, assign=json.dumps({unique: [1]}),
        startingTimestamp=first + 40, endingTimestamp=first + 60, maxRecordsPerPartition=7,
    ).load()  # fmt: skip
    assert timed.rdd.getNumPartitions() == 3  # of at most seven records each
    assert sorted(row.offset for row in timed.select("offset").collect()) == list(range(40, 60))


@pytest.mark.parametrize(
    "option",
    ["startingOffsets", "endingOffsets", "startingOffsetsByTimestamp", "endingOffsetsByTimestamp"],
)
def test_a_place_in_a_partition_that_is_not_read_is_a_wrong_name(spark, east, unique, option):
    east.create_topic(unique, partitions=1)
    named = json.dumps({unique: {"0": 0, "1": 0}, "ordres": {"0": 5}})
    wrong = rf"{option} names ordres/0, {unique}/1, which the query does not read"
    with pytest.raises(InputError, match=wrong), spark_failures():
        source(spark, east, subscribe=unique, **{option: named}).load().count()


def test_times_by_partition_and_the_number_of_tasks_are_kept(spark, east, unique):
    east.create_topic(unique, partitions=2)
    plain(east, unique, 100, 0)
    plain(east, unique, 100, 1)
    times = json.dumps({unique: {"0": NOW_MS + 90, "1": NOW_MS + 50}})
    frame = source(
        spark, east, subscribe=unique, startingOffsetsByTimestamp=times, minPartitions=6,
        includeHeaders="false", **{"kafka.fetch.max.wait.ms": "20"},
    ).load()  # fmt: skip
    assert "headers" not in frame.columns
    assert frame.rdd.getNumPartitions() >= 6
    found = {(row.partition, row.offset) for row in frame.select("partition", "offset").collect()}
    assert found == {(0, n) for n in range(90, 100)} | {(1, n) for n in range(50, 100)}
    late = source(
        spark, east, subscribe=unique, startingTimestamp=NOW_MS + 10_000,
        startingOffsetsByTimestampStrategy="error",
    )  # fmt: skip
    with pytest.raises(InputError, match="no record at or after"), spark_failures():
        late.load().count()


def test_a_frame_that_was_filtered_before_is_read_whole_again(spark, east, unique):
    east.create_topic(unique, partitions=2)
    for partition in range(2):
        plain(east, unique, 50, partition)
    frame = source(spark, east, subscribe=unique).load()
    assert frame.where("partition = 1 and offset >= 10 and offset < 20").count() == 10
    assert frame.count() == 100


def test_aborted_transactions_are_left_out_unless_asked_for(spark, east, unique):
    east.create_topic(unique, partitions=1)
    producer = Producer({**east.client_settings(), "transactional.id": unique})
    producer.init_transactions(20)
    for number in range(4):
        producer.begin_transaction()
        for each in range(50):
            producer.produce(unique, b"%d-%d" % (number, each), partition=0)
        producer.flush(20)
        if number % 2:
            producer.abort_transaction(20)
        else:
            producer.commit_transaction(20)
    assert source(spark, east, subscribe=unique).load().count() == 100
    open_too = source(spark, east, subscribe=unique, isolation="read_uncommitted").load()
    assert open_too.count() == 200


def test_a_cluster_of_the_topology_is_read_by_its_alias(spark, east, unique, tmp_path):
    east.create_topic(f"{unique}.a", partitions=1)
    east.create_topic(f"{unique}.b", partitions=1)
    plain(east, f"{unique}.a", 5)
    plain(east, f"{unique}.b", 6)
    file = write_topology(tmp_path / "topology.yaml", "x", (east, "west"), [active_passive(["x"])])
    frame = (
        spark.read.format("replicator-kafka").option("topology", str(file))
        .option("cluster", "east").option("subscribePattern", f"{unique}\\..*").load()
    )  # fmt: skip
    counts = {row.topic: row["count"] for row in frame.groupBy("topic").count().collect()}
    assert counts == {f"{unique}.a": 5, f"{unique}.b": 6}


def test_everything_wrong_with_the_options_is_reported_at_once(spark, east):
    with pytest.raises(InputError) as raised, spark_failures():
        source(
            spark, east, subscribe="a", assign="{}", isolation="none", startAt="3"
        ).load().count()
    said = raised.value.paragraph()
    for part in ("exactly one of subscribe", "isolation is read_committed", "unknown option"):
        assert part in said


def test_a_log_that_is_shorter_than_asked_for_is_not_read_in_silence(spark, east, unique):
    east.create_topic(unique, partitions=1)
    plain(east, unique, 5)
    begin = json.dumps({unique: {"0": 9}})
    with pytest.raises(ReplicatorError, match="ends at 5, below 9") as raised, spark_failures():
        source(spark, east, subscribe=unique, startingOffsets=begin).load().count()
    assert raised.value.code == SourceDataLostError.code
    allowed = source(spark, east, subscribe=unique, startingOffsets=begin, failOnDataLoss="false")
    assert allowed.load().count() == 0


def test_a_missing_topic_is_named_with_its_cluster(spark, east, unique):
    with pytest.raises(Exception, match=f"no such topic or partition: {unique}") as raised, \
            spark_failures():  # fmt: skip
        source(spark, east, subscribe=unique).load().count()
    assert raised.value.code == NotFoundError.code


def test_a_stream_takes_every_record_once_in_batches_of_a_limited_size(
    spark, east, unique, tmp_path
):
    east.create_topic(unique, partitions=2)
    plain(east, unique, 30, 0)
    plain(east, unique, 10, 1)
    out, checkpoint = str(tmp_path / "out"), str(tmp_path / "checkpoint")

    def run_once():
        stream = (
            spark.readStream.format("replicator-kafka")
            .option("bootstrapServers", ",".join(east.bootstrap_servers))
            .option("subscribe", unique).option("maxOffsetsPerTrigger", 16)
            .option("startingOffsets", "earliest").load()
            .select("partition", "offset", "value")
        )  # fmt: skip
        query = (
            stream.writeStream.format("parquet").option("path", out)
            .option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
        )  # fmt: skip
        assert query.awaitTermination(90)
        return [one.numInputRows for one in query.recentProgress if one.numInputRows]

    # Also with availableNow no micro-batch is much larger: each partition rounds its part up.
    batches = run_once()
    assert sum(batches) == 40
    assert max(batches) <= 18
    plain(east, unique, 5, 1)
    run_once()
    rows = spark.read.parquet(out).collect()
    assert sorted((row.partition, row.offset) for row in rows) == [
        *((0, n) for n in range(30)), *((1, n) for n in range(15)),
    ]  # fmt: skip


def test_a_stream_begins_with_what_is_written_next(spark, east, unique, tmp_path):
    east.create_topic(unique, partitions=1)
    plain(east, unique, 10)
    query = (
        spark.readStream.format("replicator-kafka")
        .option("bootstrapServers", ",".join(east.bootstrap_servers)).option("subscribe", unique)
        .load().writeStream.format("noop").option("checkpointLocation", str(tmp_path / "at"))
        .trigger(availableNow=True).start()
    )  # fmt: skip
    assert query.awaitTermination(60)
    assert sum(one.numInputRows for one in query.recentProgress) == 0
