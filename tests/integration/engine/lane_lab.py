"""Real lanes between real clusters, and plain clients to write, read and compare with.

A lane here is the product's own thread with a spec made by hand: no worker, no controller. So a test
decides what a controller would have found out, and sees what a worker would have received.
"""

import random
import threading
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import NewTopic, OffsetSpec
from producing import produce
from running_lane import PATIENCE_SECONDS, RunningLane
from whole_topic import read_topic

from replicator.dataplane.copy.quarantine_record import QUARANTINE_HEADER
from replicator.dataplane.takeover.lane_records import read_lane_records
from replicator.dataplane.transport.spec import LaneSettings, LaneSpec, PartitionWork
from replicator.formats.checkpoint import Checkpoint, decode_checkpoints
from replicator.identifiers import (
    HOPS_HEADER,
    checkpoints_topic,
    control_topic,
    quarantine_topic,
)
from replicator.kafka.clients.wire_json import decode_value
from replicator.policy.capacity.memory_shares import MemoryShare
from replicator.policy.values import StartFrom, Throttle
from replicator.testing import LocalCluster, wait_until
from replicator.testing.faults.fault_proxy import FaultProxy
from replicator.topology.plan import ClusterPlan

SETTINGS = LaneSettings(
    delivery="exactly-once",
    commit_interval_seconds=0.2,
    provenance="full",
    blocked=("west",),
    start_from=StartFrom(),
    on_record_error="quarantine",
    on_truncation="stop",
)


@dataclass(frozen=True, slots=True)
class Seen:
    """One record as an ordinary reader sees it."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    headers: tuple[tuple[str, bytes | None], ...]

    @property
    def hops(self) -> str:
        """Our header; empty without one."""
        found = [value for name, value in self.headers if name == HOPS_HEADER]
        return found[-1].decode() if found and found[-1] is not None else ""

    @property
    def own_headers(self) -> tuple[tuple[str, bytes | None], ...]:
        """The headers without the last one of ours."""
        if self.headers and self.headers[-1][0] == HOPS_HEADER:
            return self.headers[:-1]
        return self.headers

    @property
    def content(self) -> tuple[Any, ...]:
        """What has to be the same on both sides."""
        return self.partition, self.key, self.value, self.timestamp_ms, self.own_headers


def numbers(*ranges: range) -> list[bytes]:
    """Values of records that ``numbered`` wrote."""
    return [b"%d" % number for each in ranges for number in each]


def recreate(cluster: LocalCluster, topic: str, config: dict[str, str] | None = None) -> None:
    """Deletes a topic and makes it anew, empty, as fast as the cluster allows."""
    admin = cluster.admin()
    admin.delete_topics([topic])[topic].result(30)
    new = NewTopic(topic, 1, 1, config={"retention.ms": "-1", **(config or {})})

    def created() -> bool:
        try:
            admin.create_topics([new])[topic].result(30)
        except KafkaException as refused:
            if refused.args[0].name() != "TOPIC_ALREADY_EXISTS":
                raise
            return False
        return True

    wait_until(created, timeout_seconds=30, describe="the new topic", interval_seconds=0.01)


class LaneLab:
    """Two clusters and the lanes between them."""

    def __init__(
        self, source: LocalCluster, target: LocalCluster, *, name: str, prepared: bool = False
    ) -> None:
        """``prepared`` where a controller has made the control topics."""
        self.name = name
        self.source = source
        self.target = target
        self.lanes: list[RunningLane] = []
        self._topics = 0
        self._prepared = prepared

    # -- set-up -------------------------------------------------------------------------------

    def topic(
        self,
        *,
        partitions: int = 1,
        source: dict[str, str] | None = None,
        target: dict[str, str] | None = None,
        on_target: bool = True,
    ) -> str:
        """A new topic on both sides, with settings of each side."""
        self._topics += 1
        name = f"t{self._topics}.{self.name}"
        # Records from long ago are part of many tests; retention must not take them away.
        kept = {"retention.ms": "-1"}
        self.source.create_topic(name, partitions=partitions, config={**kept, **(source or {})})
        if on_target:
            self.target.create_topic(name, partitions=partitions, config={**kept, **(target or {})})
        return name

    def prepare(
        self,
        *,
        quarantine: dict[str, str] | None = None,
        lanes: int = 1,
        checkpoints: bool = True,
        quarantines: bool = True,
    ) -> None:
        """The control topics; done by the first lane where the test does not. Two may be there already."""
        self._prepared = True
        if checkpoints:
            self.target.create_topic(
                checkpoints_topic(self.name, "east"),
                partitions=lanes,
                config={"cleanup.policy": "compact"},
            )
        if quarantines:
            self.target.create_topic(
                quarantine_topic(self.name, "east"),
                config=quarantine or {"max.message.bytes": "4000000"},
            )
        self.target.create_topic(control_topic(self.name), config={"cleanup.policy": "compact"})

    def plan(self, cluster: LocalCluster, alias: str) -> ClusterPlan:
        return ClusterPlan(alias, tuple(cluster.bootstrap_servers))

    def work(self, topic: str, **fields: Any) -> tuple[PartitionWork, ...]:
        """All partitions of a topic, or the one given as ``partition``."""
        count = len(self.source.admin().list_topics(topic, timeout=20).topics[topic].partitions)
        only = fields.pop("partition", None)
        fields = {"target_topic": topic, "topic_id": "", **fields}
        numbers = range(count) if only is None else [only]
        return tuple(PartitionWork(topic, number, **fields) for number in numbers)

    def lane(
        self,
        *topics: str,
        work: Iterable[PartitionWork] | None = None,
        throttle: Throttle | None = None,
        lane: int = 0,
        memory: MemoryShare | None = None,
        **settings: Any,
    ) -> RunningLane:
        """Starts a lane on all partitions of the topics, with changed settings."""
        if not self._prepared:
            self.prepare()
        if work is None:
            work = [item for topic in topics for item in self.work(topic)]
        running = RunningLane(
            LaneSpec(
                topology=self.name,
                link="link",
                source=self.plan(self.source, "east"),
                target=self.plan(self.target, "west"),
                lane=lane,
                layout_epoch=1,
                settings=replace(SETTINGS, **settings),
                work=tuple(work),
                throttle=throttle or Throttle(),
                memory=memory or MemoryShare(),
            )
        )
        self.lanes.append(running)
        return running

    def close(self) -> None:
        """Stops every lane."""
        for running in self.lanes:
            if running.lane.is_alive():
                running.lane.stop(9)
        for running in self.lanes:
            running.lane.join(PATIENCE_SECONDS)

    # -- records ------------------------------------------------------------------------------

    def produce(self, topic: str, *records: dict[str, Any], **config: Any) -> None:
        """Writes records to the source; each is the client's own arguments (partition 0)."""
        produce(self.source, topic, records, partition=0, settings={"linger.ms": 5, **config})

    def numbered(self, topic: str, numbers: Iterable[int], *, partition: int = 0) -> None:
        """Writes records whose value is their number."""
        self.produce(topic, *({"value": b"%d" % n, "partition": partition} for n in numbers))

    def read(
        self, cluster: LocalCluster, topic: str, *, isolation: str = "read_committed"
    ) -> list[Seen]:
        """Everything in a topic now, by partition and offset; waits for transactions to be decided."""
        return [_seen(each) for each in read_topic(cluster, topic, isolation_level=isolation)]

    def on_source(self, topic: str) -> list[Seen]:
        return self.read(self.source, topic)

    def on_target(self, topic: str) -> list[Seen]:
        return self.read(self.target, topic)

    def values(self, topic: str) -> list[bytes | None]:
        """Values on the target in order (of one partition)."""
        return [seen.value for seen in self.on_target(topic)]

    def quarantined(self) -> list[tuple[Seen, dict[str, Any]]]:
        """The quarantine topic: each record and what it says about itself."""
        return [
            (seen, decode_value(dict(seen.headers)[QUARANTINE_HEADER] or b""))
            for seen in self.on_target(quarantine_topic(self.name, "east"))
        ]

    # -- conditions ---------------------------------------------------------------------------

    def end(self, topic: str, partition: int = 0, *, cluster: LocalCluster | None = None) -> int:
        """Where a partition of the source ends now, markers included."""
        place = TopicPartition(topic, partition)
        admin = (cluster or self.source).admin()

        def ends() -> list[int]:
            try:
                asked = admin.list_offsets({place: OffsetSpec.latest()})
                return [int(asked[place].result(PATIENCE_SECONDS).offset)]
            except KafkaException as error:
                if not error.args[0].retriable():
                    raise
                return []  # as right after a broker's start, which the client has not heard of yet

        return wait_until(ends, timeout_seconds=PATIENCE_SECONDS, describe=f"an end of {place}")[0]

    def checkpoints(self, *, lane: int = 0) -> dict[tuple[str, int], Checkpoint]:
        """What is stored on the target now."""
        running = next(each for each in self.lanes if each.spec.lane == lane)
        return decode_checkpoints(read_lane_records(running.spec, client_id="lab"))

    def caught_up(
        self, running: RunningLane, *topics: str, timeout_seconds: float = PATIENCE_SECONDS
    ) -> None:
        """Waits until the lane has stored progress to where its partitions end now."""
        wanted = {
            (item.topic, item.partition): self.end(item.topic, item.partition)
            for item in running.spec.work
            if not topics or item.topic in topics
        }
        wait_until(
            lambda: all(self._position(running, *place) >= end for place, end in wanted.items()),
            timeout_seconds=timeout_seconds,
            describe=lambda: f"positions {wanted}, but the lane has {running.stats}, {running.log}",
        )

    def _position(self, running: RunningLane, topic: str, partition: int) -> int:
        for state in running.lane._states():
            if state.key == (topic, partition):
                return state.committed
        return -1

    def copied(self, *topics: str, **settings: Any) -> RunningLane:
        """Runs a lane until it has caught up, and stops it."""
        running = self.lane(*topics, **settings)
        self.caught_up(running)
        running.stop()
        return running

    def survives_cuts_of(self, proxy: FaultProxy, **settings: Any) -> None:
        """Cuts the target off at any instant, again and again, under load; judges, and stops the lane."""
        topic = self.topic()
        self.prepare()
        lane = self.lane(topic, commit_interval_seconds=0.05, **settings)
        draw = random.Random(7)
        pause = threading.Event()
        written = 0
        for _ in range(12):
            self.numbered(topic, range(written, written + 500))
            written += 500
            pause.wait(draw.random() * 0.3)  # any instant is as good as another
            proxy.cut()
            pause.wait(draw.random() * 0.2)
            proxy.heal()
        try:
            self.caught_up(lane)
            assert self.values(topic) == [b"%d" % number for number in range(written)]
        finally:
            self.close()

    def until(self, condition, describe: str, running: RunningLane | None = None) -> Any:
        """Waits for a condition; the message shows the lane."""
        return wait_until(
            condition,
            timeout_seconds=PATIENCE_SECONDS,
            describe=lambda: (
                f"{describe}; {running.stats if running else ''} {running.log if running else ''}"
            ),
        )


def _seen(message) -> Seen:
    return Seen(
        partition=message.partition(),
        offset=message.offset(),
        key=message.key(),
        value=message.value(),
        timestamp_ms=message.timestamp()[1],
        headers=tuple(message.headers() or ()),
    )
