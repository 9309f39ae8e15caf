"""`startFrom: latest` is about what was there when the flow was first applied; nothing that comes later is cut."""

import pytest
from confluent_kafka.admin import NewPartitions
from producing import produce
from whole_topic import read_topic

from replicator.testing import wait_until


def write(cluster, topic, partition, numbers):
    produce(cluster, topic, (b"%d" % number for number in numbers), partition=partition)


def values(cluster, topic):
    """Partition and value of every committed record; none while the topic is not there."""
    if topic not in cluster.admin().list_topics(timeout=20).topics:
        return set()
    return {(each.partition(), int(each.value())) for each in read_topic(cluster, topic)}


@pytest.mark.slow
def test_topics_and_partitions_that_appear_while_no_worker_runs_are_copied_whole(
    worker, east, west, unique
):
    first, late = f"{unique}.first", f"{unique}.late"
    east.create_topic(first)
    write(east, first, 0, range(10))
    worker.cluster(east)
    worker.cluster(west)
    worker.link("orders", "east", "west", [f"{unique}.*"], startFrom="latest")
    worker.start()

    def begun():
        write(east, first, 0, [100])
        return (0, 100) in values(west, first)

    wait_until(begun, timeout_seconds=60, describe=worker.log_text)
    worker.stop()
    east.create_topic(late)
    write(east, late, 0, range(20))
    east.admin().create_partitions([NewPartitions(first, 2)])[first].result(30)
    write(east, first, 1, range(20))
    worker.start()

    wait_until(
        lambda: {(1, n) for n in range(20)} <= values(west, first)
        and {(0, n) for n in range(20)} == values(west, late),
        timeout_seconds=60, describe=lambda: f"{values(west, first)} {values(west, late)}",
    )  # fmt: skip
    assert not {(0, n) for n in range(10)} & values(west, first)
