"""A broker that is cut off from the controllers answers clients as before, and knows nothing that happened since.

What it shows of a log looks like a log that lost its end. Nothing may be copied twice for it, and nothing be given up.
"""

import contextlib
import time
from dataclasses import replace
from typing import Self

import pytest
from confluent_kafka.admin import NewTopic
from lane_lab import SETTINGS, LaneLab, numbers
from producing import produce

from replicator.batches.registry.other_topologies import registry_of_source
from replicator.batches.registry.producer_registry import register
from replicator.control.records.pair_records import Layout
from replicator.dataplane.transport.spec import LaneSpec
from replicator.formats.producer_registry import RegisteredProducer
from replicator.identifiers import LOG_END_KEY, checkpoints_topic, control_topic
from replicator.kafka.logs.log_writer import LogWriter
from replicator.testing import LocalCluster, start_all, wait_until
from replicator.testing.faults.fault_proxy import FaultProxy
from replicator.testing.kit.ports import free_ports
from replicator.topology.plan import ClusterPlan
from replicator.wire.connection.connection import BrokerConnection
from replicator.wire.connection.leader import split_address
from replicator.wire.connection.topic_questions import told_leaders, topics_question
from replicator.wire.requests.produce_one import end_by_a_write
from replicator.wiring.lane_main import layout_still_holds

pytestmark = pytest.mark.slow

BATCHES = {"engine": "batches", "provenance": "path"}
ENGINES = pytest.mark.parametrize("engine", [{}, BATCHES], ids=["records", "batches"])
OWNERS = 6
"""So many owners of a lane follow each other: each meets that broker first by one chance in three."""


@pytest.fixture(scope="module")
def three():
    cluster = LocalCluster("three", brokers=3, isolable=True)
    start_all((cluster,))
    yield cluster
    cluster.stop()


class CutOff:
    """Whose broker is cut off from the controllers, for as long as the block lasts; it leads what it led."""

    def __init__(self, cluster: LocalCluster, broker: int) -> None:
        self.cluster = cluster
        self.broker = broker
        self._everybody = ClusterPlan("three", tuple(cluster.bootstrap_servers))
        self._led = [
            (name, number)
            for name, topic in cluster.admin().list_topics(timeout=20).topics.items()
            for number, part in topic.partitions.items()
            if part.leader == broker
        ]
        self._before = self._known_by(broker)

    def __enter__(self) -> Self:
        self.cluster.isolate(self.broker)
        wait_until(self._knows_least, timeout_seconds=60, describe="leaders that it does not know")
        return self

    def __exit__(self, *_: object) -> None:
        self.cluster.rejoin(self.broker)
        wait_until(self._is_whole, timeout_seconds=60, describe="a cluster that is whole again")

    @property
    def others(self) -> dict[str, str]:
        """The setting of a client that knows of the other brokers only."""
        servers = self.cluster.admin_bootstrap_servers
        kept = [server for number, server in enumerate(servers) if number != self.broker]
        return {"bootstrap.servers": ",".join(kept)}

    def _known_by(self, broker):
        """The leaders of what it led, as one broker tells."""
        deadline = time.monotonic() + 10
        address = split_address(self.cluster.bootstrap_servers[broker])
        names = {name for name, _ in self._led}
        with BrokerConnection(
            self._everybody, address, client_id="lab", deadline=deadline
        ) as connection:
            answer = connection.call(topics_question(sorted(names)), newest=12, deadline=deadline)
        known = told_leaders(answer)
        return [known.get(place) for place in self._led]

    def _knows_least(self) -> bool:
        """Both others have heard of every election: a client that met one which has not would write to the broker."""
        others = [self._known_by(number) for number in range(3) if number != self.broker]
        return others[0] == others[1] and all(
            new is not None and new.epoch > old.epoch
            for old, new in zip(self._before, others[0], strict=True)
        )

    def _is_whole(self) -> bool:
        """All know the same leaders, and every replica is in sync: the next test takes another broker away."""
        topics = self.cluster.admin().list_topics(timeout=20).topics.values()
        parts = [part for topic in topics for part in topic.partitions.values()]
        in_sync = all(len(part.isrs) == len(part.replicas) for part in parts)
        known = [self._known_by(number) for number in range(3)]
        return in_sync and known[0] == known[1] == known[2]


def leader(cluster: LocalCluster, topic: str) -> int:
    """Of its only partition; -1 where a broker is asked that has not heard of it."""
    found = cluster.admin().list_topics(topic, timeout=20).topics[topic].partitions
    return found[0].leader if found else -1


def placed(cluster: LocalCluster, topic: str, first: int) -> None:
    """A topic of one partition that this broker leads."""
    replicas = [first, (first + 1) % 3, (first + 2) % 3]
    new = NewTopic(topic, num_partitions=1, replica_assignment=[replicas])
    cluster.admin().create_topics([new])[topic].result(30)
    wait_until(lambda: leader(cluster, topic) == first, timeout_seconds=30, describe="its leader")


def copied_by_one_after_the_other(lab, topic, engine, write):
    for start in range(100, 100 + 20 * OWNERS, 20):
        write(range(start, start + 20))
        copied(lab, topic, start + 20, engine)


def copied(lab, topic, end, engine):
    """Runs owners of the lane, until one has stored that it copied up to ``end`` of the source.

    That broker may coordinate the lane's transactions as far as it knows: it calls a later owner replaced. A worker
    whose lane ends so asks its group whose it is, and runs it again.
    """
    while True:
        lane = lab.lane(topic, **engine)
        lab.until(
            lambda lane=lane: lane.ended or lab._position(lane, topic, 0) >= end, "the copy", lane
        )
        assert not lane.gaps, "nothing was given up"
        if not lane.ended:
            lane.stop()
            return
        assert lane.ended.fenced, lane.ended


@ENGINES
@pytest.mark.parametrize(
    "led",
    [(0, 0), (0, 1), (1, 0)],
    ids=["checkpoints and copies", "checkpoints", "copies"],
)
def test_what_a_target_held_in_the_past_makes_nothing_be_copied_again(
    east, three, unique, engine, led
):
    """The broker that is cut off led the checkpoints, the copies or both before: what has the number 0."""
    checkpoints, copies = led
    lab = LaneLab(east, three, name=unique)
    lab.prepare()
    stale = (leader(three, checkpoints_topic(lab.name, "east")) + checkpoints) % 3
    topic = f"t.{unique}"
    east.create_topic(topic)
    placed(three, topic, (stale + copies) % 3)
    lab.numbered(topic, range(100))
    lab.copied(topic, **engine)
    try:
        with CutOff(three, stale):
            copied_by_one_after_the_other(
                lab, topic, engine, lambda some: lab.numbered(topic, some)
            )
        assert lab.values(topic) == numbers(range(100 + 20 * OWNERS))
        assert lab.checkpoints()[topic, 0].target_loss.count == 0
    finally:
        lab.close()


@ENGINES
@pytest.mark.parametrize("policy", ["stop", "report"])
def test_a_source_of_the_past_has_lost_nothing(three, west, unique, engine, policy):
    lab = LaneLab(three, west, name=unique)
    topic, stale = f"t.{unique}", 1
    west.create_topic(topic)
    placed(three, topic, stale)
    engine = {**engine, "on_truncation": policy}
    lab.numbered(topic, range(100))
    lab.copied(topic, **engine)
    try:
        with CutOff(three, stale) as cut_off:
            copied_by_one_after_the_other(
                lab,
                topic,
                engine,
                lambda some: produce(
                    three,
                    topic,
                    [b"%d" % number for number in some],
                    partition=0,
                    settings=cut_off.others,
                ),
            )
        assert lab.values(topic) == numbers(range(100 + 20 * OWNERS))
    finally:
        lab.close()


class OneAddress(LaneLab):
    """Whose source has one bootstrap server, as behind a load balancer: it leads to one broker after another."""

    def __init__(self, source, target, *, name, first):
        super().__init__(source, target, name=name)
        self._ports = [int(server.rpartition(":")[2]) for server in source.bootstrap_servers]
        self.door = FaultProxy(port=free_ports(1)[0], target_port=self._ports[first])
        self.door.start()

    def plan(self, cluster, alias):
        plan = super().plan(cluster, alias)
        servers = (f"127.0.0.1:{self.door.port}",)
        return plan if cluster is self.target else replace(plan, bootstrap_servers=servers)

    def lead_to(self, broker):
        self.door.target_port = self._ports[broker]

    def close(self):
        super().close()
        self.door.stop()


@ENGINES
def test_what_a_client_that_knows_that_broker_alone_never_hears_of_is_told_and_copied(
    three, west, unique, engine
):
    """The lane has copied all that the broker shows: nothing it hears is refuted by anything that it sees."""
    stale, topic = 1, f"t.{unique}"
    lab = OneAddress(three, west, name=unique, first=stale)
    west.create_topic(topic)
    placed(three, topic, stale)
    lab.numbered(topic, range(100))
    lane = lab.lane(topic, **engine)
    try:
        lab.caught_up(lane)
        with CutOff(three, stale) as cut_off:
            late = [b"%d" % number for number in range(100, 120)]
            produce(three, topic, late, partition=0, settings=cut_off.others)
            lab.until(lambda: lane.partition(topic).failure, "that records wait", lane)
            told = lane.partition(topic).failure
            assert told.code == "NOT_MOVING"
            assert "up to 120" in told.detail
            lab.lead_to((stale + 1) % 3)
            lab.until(lambda: lab._position(lane, topic, 0) >= 120, "the copy", lane)
            assert not lane.ended
            lane.stop()
        assert lab.values(topic) == numbers(range(120))
    finally:
        lab.close()


def test_a_lane_does_not_start_by_a_layout_of_the_past(east, three, unique):
    lab = LaneLab(east, three, name=unique)
    lab.prepare()
    topic = control_topic(unique)
    stale = leader(three, topic)
    everybody = ClusterPlan("west", tuple(three.bootstrap_servers))
    spec = LaneSpec(
        topology=unique, link="link", source=ClusterPlan("east", tuple(east.bootstrap_servers)), target=everybody,
        lane=0, layout_epoch=1, settings=SETTINGS, work=(),
    )  # fmt: skip

    def end_of(place):
        return end_by_a_write(everybody, *place, key=LOG_END_KEY, timeout_seconds=30.0)

    layout = Layout(source="east", epoch=1, state="stable", blocks=(), total=1)
    with LogWriter(everybody, topic, client_id="lab") as writer:
        writer.write([layout.encode()])
    assert layout_still_holds(spec, end_of)
    with CutOff(three, stale) as cut_off:
        others = ClusterPlan("west", tuple(cut_off.others["bootstrap.servers"].split(",")))
        with LogWriter(others, topic, client_id="lab") as writer:
            writer.write([layout.model_copy(update={"epoch": 2}).encode()])
        assert not any(layout_still_holds(spec, end_of) for _ in range(OWNERS))


def test_what_is_registered_since_is_no_strangers_whoever_led_the_registry(three, unique):
    everybody = ClusterPlan("three", tuple(three.bootstrap_servers))
    stale, other = 1, f"{unique}-other"
    for topic in (control_topic(unique), control_topic(other)):
        placed(three, topic, stale)
    three.create_topic(checkpoints_topic(other, unique), partitions=1)

    def registers(plan, topology, producer_id):
        now = round(time.time() * 1000)  # of now, as these topics are not compacted
        register(plan, topology, RegisteredProducer(producer_id, unique, "three", at_ms=now))

    def opened():
        return registry_of_source(everybody, unique, blocked=[unique], client_id="lab")

    registers(everybody, unique, 1)
    registers(everybody, other, 2)
    with contextlib.closing(opened()) as kept:
        assert (kept.source_of(1), kept.source_of(2), kept.source_of(9)) == (unique, unique, None)
        with CutOff(three, stale) as cut_off:
            others = ClusterPlan("three", tuple(cut_off.others["bootstrap.servers"].split(",")))
            registers(others, unique, 3)
            registers(others, other, 4)
            assert (kept.source_of(3), kept.source_of(4)) == (unique, unique)
            for _ in range(OWNERS):
                with contextlib.closing(opened()) as registry:
                    assert (registry.source_of(3), registry.source_of(4)) == (unique, unique)
