"""Canaries through a real worker's lanes: timed, counted, and not lost while a flow is paused."""

import asyncio
import json

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import OffsetSpec
from lane_lab import LaneLab
from topology_files import active_passive, plan_of

from replicator.clock import SystemClock
from replicator.control.controller.bootstrap import bootstrap_pair
from replicator.control.controller.controller import PairController
from replicator.control.operator.pause import pause_flow, resume_flow
from replicator.control.store.read import read_control
from replicator.control.tasks.task import TaskContext
from replicator.control.tasks.watch.canary import (
    CALM_INTERVAL_SECONDS,
    LOST_SECONDS,
    WATCHED_SECONDS,
    canary_task,
)
from replicator.identifiers import canary_topic
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.observability.snapshot import TaskMetrics
from replicator.testing import wait_until

FLOW = "east->west"
COUNT = "replicator_canary_roundtrip_seconds_count"
LOST = "replicator_canary_lost_total"


def test_round_trips_are_measured_and_canaries_are_none_of_the_flows_records(worker, east, west):
    lab = LaneLab(east, west, name=worker.name)
    topic = lab.topic(on_target=False)
    lab.numbered(topic, range(10))
    worker.cluster(east)
    worker.cluster(west)
    worker.link("dr", "east", "west", [topic], naming="prefix")
    worker.start()

    worker.until(lambda: worker.metric(COUNT, link="dr") >= 3, "three round trips")
    assert worker.metric(LOST, link="dr") == 0
    seconds = worker.metric("replicator_canary_roundtrip_seconds_sum", link="dr")
    assert 0 < seconds / worker.metric(COUNT, link="dr") < 30
    ready = json.loads(worker.text("/readyz"))
    assert ready["ok"]
    (line,) = ready["details"]
    assert line.startswith(f"{FLOW} dr: canary last came ")
    assert line.endswith(" 0 lost")

    worker.until(
        lambda: worker.metric("replicator_records_replicated_total") == 10, "the records alone"
    )
    flow = worker.flow(FLOW)
    assert [each["source"] for each in flow["topics"]] == [topic]
    listed = worker.command("topics")["topics"]
    assert [each["source"] for each in listed] == [topic]

    worker.command("pause", "--flow", FLOW)
    held = worker.until(lambda: _still(worker), "canaries to stop with the flow")
    worker.command("resume", "--flow", FLOW)
    worker.until(lambda: worker.metric(COUNT, link="dr") > held, "canaries to go on")
    assert worker.metric(LOST, link="dr") == 0


def end(cluster, topic):
    future = cluster.admin().list_offsets({TopicPartition(topic, 0): OffsetSpec.latest()})
    return next(iter(future.values())).result(20).offset


def _still(worker):
    """The count, once two turns have not moved it."""
    seen = []

    def settled():
        seen.append(worker.metric(COUNT, link="dr"))
        return len(seen) >= 12 and len(set(seen[-12:])) == 1

    wait_until(settled, timeout_seconds=30, interval_seconds=0.25, describe="the count to stand")
    return seen[-1]


class ShiftedClock(SystemClock):
    """The real time, and what a test adds to it."""

    shift = 0.0

    def monotonic(self):
        return super().monotonic() + self.shift


@pytest.fixture
def uncopied(tmp_path, unique, east, west):
    """A duty whose flow is set up, with no lane that copies."""
    east.create_topic(unique)
    plan = plan_of(active_passive([unique]), clusters=(east, west), name=unique)
    pair, clock = plan.pairs[0], ShiftedClock()
    figures = {"dr": TaskMetrics()}
    with (
        ClusterAdmin(pair.source, client_id="test") as source,
        ClusterAdmin(pair.target, client_id="test") as target,
    ):
        bootstrap_pair(
            plan=plan, pair=pair, source_admin=source, target_admin=target,
            clock=clock, client_id="test",
        )  # fmt: skip
        controller = PairController(
            pair, plan, source_admin=source, target_admin=target, clock=clock, client_id="test"
        )
        task = canary_task(
            TaskContext(
                plan, pair, clock, "test", controller.store,
                lambda: read_control(unique, pair.target, client_id="test"), figures,
            )
        )  # fmt: skip

        name = canary_topic(unique, "east", "west", "dr")
        asyncio.run(task.run())  # makes the topic

        def sends():
            """One turn; whether it sent a canary."""
            before = end(east, name)
            asyncio.run(task.run())
            return end(east, name) > before

        def active():
            control = asyncio.run(controller.run_once(all_settings=True)).control
            held = control.topic("east", "dr", name)
            return held is not None and held.state == "active"

        wait_until(active, timeout_seconds=30, describe="the canary's copy")
        yield plan, clock, figures["dr"], sends
        task.close()
        controller.close()


def test_a_canary_that_nobody_copies_is_lost_after_its_time(uncopied):
    _, clock, figures, sends = uncopied
    wait_until(sends, timeout_seconds=20, describe="a canary")
    assert figures.canary_lost == 0
    clock.shift = LOST_SECONDS + 1
    assert sends()
    assert figures.canary_lost == 1
    assert sum(figures.canary_buckets) == 0


def test_canaries_are_further_apart_where_all_is_well(uncopied, east, west):
    plan, clock, figures, sends = uncopied
    wait_until(sends, timeout_seconds=20, describe="the first canary")
    lab = LaneLab(east, west, name=plan.topology, prepared=True)
    lab.lane(canary_topic(plan.topology, "east", "west", "dr"))

    def calm():
        """Whether a canary is followed by none, long after anything that was worth a look."""
        clock.shift += WATCHED_SECONDS + 1
        return sends() and not sends()

    try:
        wait_until(calm, timeout_seconds=60, describe=lambda: f"calm: {figures}")
        clock.shift += CALM_INTERVAL_SECONDS
        assert sends()
    finally:
        lab.close()


def test_a_pause_is_no_loss(uncopied):
    plan, clock, figures, sends = uncopied
    wait_until(sends, timeout_seconds=20, describe="the first canary")
    pause_flow(plan, FLOW, by="test")
    wait_until(lambda: not sends(), timeout_seconds=20, describe="the pause to be noticed")
    clock.shift = LOST_SECONDS + 1
    assert not sends()
    resume_flow(plan, FLOW, by="test")
    wait_until(sends, timeout_seconds=20, describe="canaries to be sent again")
    assert figures.canary_lost == 0
