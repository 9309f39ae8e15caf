"""A backlog that compresses a hundredfold, in many partitions on three brokers: the worker keeps to its memory."""

import contextlib
import random

import pytest
from confluent_kafka import Producer
from container import proportional_bytes

from replicator.testing import wait_until

FLOW = "east->west"
MIB = 1024 * 1024
LIMIT = 1024 * MIB
PARTITIONS = 200
BATCHES = 8
"""Of each partition, of about a megabyte of records each."""

RECORDS = 100
"""Of each batch."""


def write_backlog(cluster, topic):
    """Records of which little is stored; returns how many."""
    draw = random.Random(7)
    values = [draw.randbytes(100) * 100 for _ in range(RECORDS)]
    producer = Producer({
        "bootstrap.servers": ",".join(cluster.bootstrap_servers), "compression.type": "zstd",
        "batch.size": MIB, "batch.num.messages": RECORDS, "linger.ms": 200, "message.max.bytes": 4 * MIB,
        "queue.buffering.max.kbytes": 200_000,
    })  # fmt: skip
    for _ in range(BATCHES):
        for partition in range(PARTITIONS):
            for value in values:
                while True:
                    with contextlib.suppress(BufferError):
                        producer.produce(topic, value, partition=partition)
                        break
                    producer.poll(0.1)
    assert producer.flush(120) == 0
    return BATCHES * PARTITIONS * RECORDS


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("engine", ["records", "batches"])
def test_a_worker_keeps_to_its_memory_in_a_backlog_that_compresses_a_hundredfold(
    clusters, scene, request, engine
):
    (east,) = clusters("east", brokers=3)
    (west,) = clusters("west")
    east.create_topic(scene.topic, partitions=PARTITIONS, config={"compression.type": "zstd"})
    written = write_backlog(east, scene.topic)
    scene.clusters(east, west)
    scene.link("active-passive", active="east", passive="west", flows=[FLOW], engine=engine)
    worker = scene.worker("--memory", f"{LIMIT // MIB}MiB")
    ends = scene.source_ends(FLOW)
    assert sum(ends.values()) == written
    highest = 0

    def caught_up() -> bool:
        nonlocal highest
        highest = max(highest, sum(map(proportional_bytes, worker.group_pids())))
        positions = scene.positions(FLOW)
        return all(positions.get(partition, 0) >= end for partition, end in ends.items())

    wait_until(caught_up, timeout_seconds=400.0, interval_seconds=0.1, describe="all of it copied")
    request.node.user_properties.append(("highest_mib", round(highest / MIB)))
    assert 100 * MIB < highest < LIMIT, f"{highest / MIB:.0f} MiB"
    said = [line for line in worker.log_lines() if line["event"] == "memory of the lane"]
    assert len(said) >= 8, "each lane says what it may hold"
