"""What a second task could gain within one partition, with and without order on the target.

``python tests/bench/one_partition.py [--records N] [--size BYTES] [--rounds R]``

Three ways to copy one partition, in plain processes that have been warmed up, taking turns, into topics of their own:

- one task: what ``bulk-sync`` does;
- in order: the first half by a task, while another process reads the second half into memory; it writes once the first
  half is committed, with the same client and settings, and nothing else to do (records engine only);
- without order: both halves at once, into two topics. No target could be read in order then; it is the bound.

CPU is that of the copying processes. Printed as a markdown table.
"""

import argparse
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from multiprocessing.pool import Pool
from multiprocessing.synchronize import Event
from pathlib import Path

from bulk import _warm
from bulk_command import TOPIC, applied
from confluent_kafka import Consumer, Producer, TopicPartition
from load import fill_with
from machine import command_line, facts
from payload import Payload

from replicator.clock import SystemClock
from replicator.control.backfill.handover import take_from_lanes
from replicator.spark.copy.bulk_plan import declarations, orders, survey
from replicator.spark.copy.task import CopyOrder, copy_order
from replicator.testing import LocalCluster, start_all

COMMIT_RECORDS = 100_000

committed: Event
reading: Event


def prepared(
    clusters: tuple[LocalCluster, LocalCluster], folder: Path, number: int, engine: str
) -> CopyOrder:
    """The partition, declared and fenced, with a target topic that nobody used before."""
    _, plan = applied(clusters, folder, number, engine)
    clock = SystemClock()
    found = survey(plan, plan.pairs[0])
    made = declarations(found, run="bench.1", by="bench", at_ms=round(time.time() * 1000))
    take_from_lanes(plan, found.pair, made, clock=clock)
    (order,) = orders(plan, found.pair, found.ranges, run="bench.1", at_once=1)
    return order


def copies(order: CopyOrder) -> float:
    """A range by the task; CPU seconds."""
    before = time.process_time()
    copy_order(order)
    return time.process_time() - before


def first_half(order: CopyOrder) -> float:
    """The same, and says when it is committed."""
    reading.wait(60)
    spent = copies(order)
    committed.set()
    return spent


def second_half(order: CopyOrder, source: dict[str, str], target: dict[str, str]) -> float:
    """Reads its half at once, and writes it when the first is there; CPU seconds."""
    before = time.process_time()
    consumer = Consumer(
        {**source, "group.id": "ahead", "enable.auto.commit": False,
         "queued.max.messages.kbytes": 65_536, "fetch.queue.backoff.ms": 5}
    )  # fmt: skip
    producer = Producer(
        {**target, "transactional.id": f"ahead.{order.topology}", "linger.ms": 20,
         "batch.size": 1_000_000, "queue.buffering.max.messages": 500_000}
    )  # fmt: skip
    producer.init_transactions(30)
    consumer.assign([TopicPartition(TOPIC, 0, order.start)])
    reading.set()
    held = []
    while len(held) < order.end - order.start:
        for message in consumer.consume(5_000, 1.0):
            at = message.offset()
            hops = [("replicator-hops", b"east/%s/0/%d" % (TOPIC.encode(), at))]
            held.append((message.value(), message.key(), message.timestamp()[1], hops))
    consumer.close()
    committed.wait(300)
    for begin in range(0, len(held), COMMIT_RECORDS):
        producer.begin_transaction()
        for value, key, timestamp, hops in held[begin : begin + COMMIT_RECORDS]:
            while True:
                try:
                    producer.produce(
                        order.work.target_topic, value, key, 0, timestamp=timestamp, headers=hops
                    )
                    break
                except BufferError:
                    producer.poll(0.01)
        producer.commit_transaction(60)
    return time.process_time() - before


def _share(ready: Event, done: Event) -> None:
    global committed, reading
    reading, committed = ready, done


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--size", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=2)
    given = parser.parse_args()
    machine = facts(command=command_line(), full=True)
    taken: dict[str, list[tuple[float, float]]] = {}
    clusters = LocalCluster("east", jvm="throughput"), LocalCluster("west", jvm="throughput")
    start_all(clusters)
    source, target = clusters
    number = 0

    def run(label: str, pool: Pool, start: Callable[[], list[float]]) -> None:
        pool.map(_warm, range(4), chunksize=1)
        began = time.monotonic()
        cpu = sum(start())
        taken.setdefault(label, []).append((time.monotonic() - began, cpu))
        print(f"{label}: {taken[label][-1]}", flush=True)

    try:
        with tempfile.TemporaryDirectory(prefix="bench-one-") as name:
            payload = Payload("history", given.size, given.records, partitions=1)
            records = fill_with(source, topic=TOPIC, payload=payload)
            half = records // 2

            def order(engine: str) -> CopyOrder:
                nonlocal number
                number += 1
                return prepared(clusters, Path(name), number, engine)

            for _ in range(given.rounds):
                for engine in ("records", "batches"):
                    context = multiprocessing.get_context("spawn")
                    ready, done = context.Event(), context.Event()
                    with context.Pool(2, _share, (ready, done)) as pool:
                        one = order(engine)
                        run(
                            f"one task, {engine}",
                            pool,
                            lambda pool=pool, one=one: [pool.apply(copies, (one,))],
                        )
                        left, right = order(engine), order(engine)
                        halves = [replace(left, end=half), replace(right, start=half)]
                        run(
                            f"two tasks without order, {engine}", pool,
                            lambda pool=pool, halves=halves: pool.map(copies, halves, chunksize=1),
                        )  # fmt: skip
                        if engine == "records":
                            one = order(engine)

                            def in_order(pool: Pool = pool, one: CopyOrder = one) -> list[float]:
                                clients = source.client_settings(), target.client_settings()
                                ahead = pool.apply_async(
                                    second_half, (replace(one, start=half), *clients)
                                )
                                first = pool.apply_async(first_half, (replace(one, end=half),))
                                return [first.get(300), ahead.get(300)]

                            run("two ranges in order, records", pool, in_order)
    finally:
        for cluster in clusters:
            cluster.stop()
    print(f"\n{machine}\n\n| how | seconds | records/s | CPU s |\n|---|---:|---:|---:|")
    for label, done_runs in taken.items():
        seconds = statistics.median(each[0] for each in done_runs)
        cpu = statistics.median(each[1] for each in done_runs)
        print(f"| {label} | {seconds:.1f} | {records / seconds:,.0f} | {cpu:.1f} |")


if __name__ == "__main__":
    main()
