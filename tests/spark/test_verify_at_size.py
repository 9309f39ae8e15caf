"""Two times two million records compared, with one changed byte among them."""

import resource

import pytest
from confluent_kafka import Producer
from copied_pair import NOW_MS, CopiedPair

from replicator.spark.verify.run import VerifyRequest, verify_flow

RECORDS = 2_000_000
PARTITIONS = 4
CHANGED = (2, 123_456)
LIMIT_SECONDS = 180.0
"""On two cores that do nothing else; the test allows for a machine that does."""
ALLOWANCE = 3.0


def fill(cluster, topic, *, hops: bool):
    """Writes records of 100 bytes; with hops they are copies, one of them changed."""
    producer = Producer(
        {**cluster.client_settings(), "linger.ms": 50, "compression.type": "none",
         "batch.size": 1_000_000, "queue.buffering.max.messages": 1_000_000}
    )  # fmt: skip
    for offset in range(RECORDS // PARTITIONS):
        for partition in range(PARTITIONS):
            value = b"%010d%d" % (offset, partition) + b"." * 89
            if hops and (partition, offset) == CHANGED:
                value = value[:-1] + b"!"
            headers = {"replicator-hops": f"east/{topic}/{partition}/{offset}"} if hops else None
            while True:
                try:
                    producer.produce(
                        topic, value, None, partition, timestamp=NOW_MS + offset, headers=headers
                    )
                except BufferError:
                    producer.poll(0.1)
                else:
                    break
    assert producer.flush(120) == 0


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_one_changed_byte_in_two_million_records_is_found(spark, tmp_path, clusters, unique):
    east, west = clusters("east", "west", jvm="throughput", heap_megabytes=700)
    pair = CopiedPair(tmp_path, unique, east, west)
    pair.apply(partitions=PARTITIONS)
    fill(east, pair.topic, hops=False)
    fill(west, pair.topic, hops=True)
    for partition in range(PARTITIONS):
        pair.checkpoint(copied_to=RECORDS // PARTITIONS, partition=partition)
    result = verify_flow(spark, pair.plan, VerifyRequest("east->west", report=tmp_path / "report"))
    print(result["seconds"], "s", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, "kB")  # noqa: T201
    assert result["total"]["compared"] == RECORDS
    assert [
        (each["partition"], each["changed"]) for each in result["topics"] if each["changed"]
    ] == [(CHANGED[0], 1)]
    for kind in ("lost", "duplicated", "reordered", "foreign"):
        assert result["total"][kind] == 0
    (row,) = spark.read.parquet(str(tmp_path / "report" / "records.parquet")).collect()
    assert row.source.offset == row["copy"].offset == CHANGED[1]
    assert result["seconds"] < LIMIT_SECONDS * ALLOWANCE
