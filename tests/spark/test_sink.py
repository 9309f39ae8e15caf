"""DataFrames and streams written with ``replicator-kafka``: what arrives, and that nothing does twice."""

from datetime import UTC, datetime

import pytest
from pyspark.sql import functions as columns
from whole_topic import read_topic

from replicator.errors import InputError
from replicator.spark.base.failures import spark_failures

AT = datetime(2026, 1, 1, 12, 0, 0, 5000, tzinfo=UTC)


def sink(writer, cluster, **options):
    writer = writer.format("replicator-kafka")
    writer = writer.option("bootstrapServers", ",".join(cluster.bootstrap_servers))
    for name, value in options.items():
        writer = writer.option(name, value)
    return writer


def test_a_frame_is_written_with_every_field(spark, east, unique):
    east.create_topic(unique, partitions=3, config={"retention.ms": "-1"})
    rows = [(b"k%d" % n, b"v%d" % n, n % 3, [("a", b"1"), ("a", None)], AT) for n in range(30)]
    frame = spark.createDataFrame(
        rows,
        "key binary, value binary, partition int, "
        "headers array<struct<key: string, value: binary>>, timestamp timestamp",
    )
    sink(frame.repartition(4).write, east, topic=unique).mode("append").save()
    found = read_topic(east, unique)
    assert sorted((m.key(), m.value(), m.partition()) for m in found) == sorted(
        (key, value, partition) for key, value, partition, _, _ in rows
    )
    assert {m.timestamp()[1] for m in found} == {round(AT.timestamp() * 1000)}
    assert all(m.headers() == [("a", b"1"), ("a", None)] for m in found)
    # Without a column for the partition a key decides, as with the Java client: its own test has
    # -790332482 for this one.
    text = spark.createDataFrame([("foobar", "x")], "key string, value string")
    east.create_topic(f"{unique}-2", partitions=10)
    sink(text.write, east, topic=f"{unique}-2").mode("append").save()
    (one,) = read_topic(east, f"{unique}-2")
    assert (one.partition(), one.key(), one.value()) == (6, b"foobar", b"x")


def test_what_is_wrong_with_a_frame_is_reported_at_once(spark, east, unique):
    frame = spark.createDataFrame([(1, "x")], "id int, key string")
    with pytest.raises(InputError) as raised, spark_failures():
        sink(frame.write, east, linger="5").mode("append").save()
    said = raised.value.paragraph()
    for part in ("no column 'value'", "a column 'topic'", "column 'id'", "unknown option 'linger'"):
        assert part in said
    nowhere = spark.createDataFrame([("x",)], "value string")
    with pytest.raises(InputError, match=f"no such topic: {unique}"), spark_failures():
        sink(nowhere.write, east, topic=unique).mode("append").save()


def test_a_micro_batch_that_is_run_again_writes_nothing_twice(spark, east, unique, tmp_path):
    for name in (f"{unique}-in", f"{unique}-out"):
        east.create_topic(name, partitions=2)
    numbers = spark.range(100).select(
        columns.col("id").cast("string").alias("value"), (columns.col("id") % 2).cast("int").alias("partition")
    )  # fmt: skip
    sink(numbers.write, east, topic=f"{unique}-in").mode("append").save()
    checkpoint = tmp_path / "checkpoint"

    def run_once():
        stream = (
            spark.readStream.format("replicator-kafka")
            .option("bootstrapServers", ",".join(east.bootstrap_servers))
            .option("subscribe", f"{unique}-in").option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", 40).load().select("value", "partition")
        )  # fmt: skip
        query = (
            sink(stream.writeStream, east, topic=f"{unique}-out")
            .option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
        )  # fmt: skip
        assert query.awaitTermination(90)

    run_once()
    # As if the driver had died after its tasks committed and before it wrote that down.
    last = max((checkpoint / "commits").glob("[0-9]*"), key=lambda one: int(one.name))
    last.unlink()
    (checkpoint / "commits" / f".{last.name}.crc").unlink(missing_ok=True)
    run_once()
    found = sorted(int(m.value()) for m in read_topic(east, f"{unique}-out"))
    assert found == list(range(100))
