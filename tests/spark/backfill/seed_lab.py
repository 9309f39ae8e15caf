"""A flow between two real clusters whose history somebody copies: topology, records, looks at it."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from confluent_kafka import Producer, TopicPartition
from topology_files import active_passive, write_topology
from whole_topic import read_topic

from replicator.clock import SystemClock
from replicator.control.backfill.handover import (
    read_control_past_open_transactions,
    take_from_lanes,
)
from replicator.control.operator.apply import apply_plan
from replicator.control.store.state import ControlState
from replicator.formats.checkpoint import Checkpoint
from replicator.identifiers import HOPS_HEADER
from replicator.kafka.logs.checkpoint_log import read_checkpoints
from replicator.spark.copy.bulk_plan import BulkPlan, declarations, orders, survey
from replicator.spark.copy.task import CopyOrder
from replicator.testing import LocalCluster, wait_until
from replicator.topology.file.load import require_plan
from replicator.topology.plan import PairPlan, Plan


class SeedLab:
    """One topology of its own name; nothing runs until a test asks for it."""

    def __init__(self, source: LocalCluster, target: LocalCluster, name: str, folder: Path) -> None:
        self.source = source
        self.target = target
        self.name = name
        self.topic = f"t.{name}"
        self.folder = folder
        self.file = folder / "topology.yaml"
        self.clock = SystemClock()

    def topology(self, **fields: Any) -> Plan:
        """Writes the file anew."""
        names = {"name": "link", "active": self.source.name, "passive": self.target.name}
        write_topology(
            self.file, self.name, (self.source, self.target),
            [active_passive([f"*{self.topic}"], engine="records") | names | fields],
            defaults={"discoveryInterval": "1s"},
        )  # fmt: skip
        return self.plan

    @property
    def plan(self) -> Plan:
        return require_plan(self.file)

    @property
    def pair(self) -> PairPlan:
        return self.plan.pairs[0]

    def applied(self, **fields: Any) -> Plan:
        """The topology, applied."""
        self.topology(**fields)
        done = apply_plan(self.plan, clock=self.clock)
        assert not done.problems, done.problems
        return self.plan

    def produce(
        self, count: int, *, topic: str | None = None, partitions: int = 1, size: int = 0,
        first: int = 0, keys: int = 0, **settings: Any,
    ) -> None:  # fmt: skip
        """Numbered records, in turn over the partitions."""
        producer = Producer({**self.source.client_settings(), "linger.ms": 20, **settings})
        filler = b"x" * size
        for number in range(first, first + count):
            key = b"k%d" % (number % keys) if keys else None
            while True:
                try:
                    producer.produce(
                        topic or self.topic, b"%d %s" % (number, filler), key, number % partitions
                    )
                    break
                except BufferError:
                    producer.poll(0.1)
        assert producer.flush(60) == 0

    def control(self) -> ControlState:
        return read_control_past_open_transactions(self.plan, self.pair)

    def positions(self) -> dict[tuple[str, int], int]:
        """Stored progress."""
        return {key: checkpoint.offset for key, checkpoint in self.checkpoints().items()}

    def checkpoints(self) -> dict[tuple[str, int], Checkpoint]:
        return read_checkpoints(self.plan.topology, self.pair, client_id="test")

    def survey(self, **options: Any) -> BulkPlan:
        return survey(self.plan, self.pair, **options)

    def taken(
        self, *, run: str = "job.1", at_once: int = 1, **options: Any
    ) -> tuple[CopyOrder, ...]:
        """What a driver does before its tasks: declares, fences, and makes orders."""
        plan, found = self.plan, self.survey(**options)
        at_ms = round(time.time() * 1000)
        take_from_lanes(
            plan, self.pair, declarations(found, run=run, by="test", at_ms=at_ms), clock=self.clock
        )
        return orders(plan, self.pair, found.ranges, run=run, at_once=at_once)

    def values(
        self, cluster: LocalCluster, topic: str | None = None
    ) -> dict[int, list[bytes | None]]:
        """Values in order of offset, by partition, as a reader of committed records sees them."""
        topic = topic or self.topic
        numbers = cluster.admin().list_topics(topic, timeout=20).topics[topic].partitions
        found: dict[int, list[bytes | None]] = {number: [] for number in numbers}
        for message in read_topic(cluster, topic):
            found[message.partition()].append(message.value())
        return found

    def records(self, cluster: LocalCluster, topic: str | None = None) -> list[tuple[Any, ...]]:
        """Everything that has to be the same on both sides, of partition 0 in order."""
        return [
            (
                each.key(), each.value(), each.timestamp()[1],
                [pair for pair in each.headers() or () if pair[0] != HOPS_HEADER],
            )
            for each in read_topic(cluster, topic or self.topic)
            if each.partition() == 0
        ]  # fmt: skip

    def truncate(self, cluster: LocalCluster, before: dict[int, int]) -> None:
        """Deletes records as retention does."""
        places = [TopicPartition(self.topic, number, offset) for number, offset in before.items()]
        for answer in cluster.admin().delete_records(places).values():
            answer.result(30)

    def until(self, condition: Callable[[], object], describe: str) -> None:
        """Waits for a condition."""
        wait_until(condition, timeout_seconds=60, describe=describe)

    def close(self) -> None:
        """Ends what still runs."""

    def states(self) -> dict[tuple[str, int], str]:
        """The state of each partition that Spark has or had."""
        return {
            (seed.topic, seed.partition): seed.state
            for seed in self.control().seeds(self.source.name)
        }
