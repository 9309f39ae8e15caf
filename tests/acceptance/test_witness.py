"""Promotion by itself: only when the witness does not see the active side either, for the whole time."""

import json
import time

import pytest
from acceptance_worker import WorkerProcess
from role_changes import LINK, Operator

from replicator.control.store.read import read_control
from replicator.testing import wait_until
from replicator.testing.kit.waiting import NotInTimeError

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

FLOW = "east->west"
AFTER_SECONDS = 12.0


@pytest.fixture
def watched(clusters, scene):
    """A link with a witness, and a worker that reaches its active side through a network that can break."""
    scene.east, west = clusters("east", "west", proxied=True)
    (central,) = clusters("central")
    automatic = {
        "witness": {"cluster": "central"}, "after": f"{AFTER_SECONDS:g}s", "interval": "1s",
        "maxLostRecords": 1_000_000,
    }  # fmt: skip
    scene.clusters(scene.east, west, central, topic_on=[scene.east])
    scene.link(
        "active-passive", active="east", passive="west", flows=[FLOW],
        failover={"automatic": automatic},
    )  # fmt: skip
    scene.worker()
    scene.writer(scene.east, rate=200)
    scene.copying(FLOW)
    scene.stop_writing()
    scene.operator = Operator(scene)
    seen_since(scene, 0.0)
    # Without one nobody knows what would be lost, and nothing is promoted.
    wait_until(lambda: contacted(scene), timeout_seconds=60.0, describe="a contact on record")
    return scene


def contacted(scene):
    plan = scene.operator.plan
    control = read_control(plan.topology, plan.cluster("west"), client_id="test")
    found = control.contact("east", LINK)
    return found is not None and found.topics


def seen_since(scene, moment):
    """Waits until the witness was told that the active side was reached after a moment."""
    plan = scene.operator.plan

    def seen():
        state = read_control(plan.topology, plan.cluster("central"), client_id="test")
        return (state.last_sighting_ms("east") or 0) > moment * 1000

    wait_until(seen, timeout_seconds=60.0, describe="a sighting of the active side")


def epoch(scene):
    """By the side that would be promoted: the other one may not answer, and is not waited for."""
    plan = scene.operator.plan
    record = read_control(plan.topology, plan.cluster("west"), client_id="test").role(LINK)
    return record.epoch if record is not None else 0


def stays(scene, seconds):
    """Nothing is promoted for so long."""
    with pytest.raises(NotInTimeError):
        wait_until(
            lambda: epoch(scene), timeout_seconds=seconds,
            describe="a promotion", interval_seconds=0.5,
        )  # fmt: skip


def near_worker(scene):
    """A worker beside the active side: its way there does not lead through the network that breaks."""
    document = json.loads(scene.topology().read_text())
    servers = scene.east.admin_bootstrap_servers
    document["spec"]["clusters"]["east"]["bootstrapServers"] = list(servers)
    folder = scene.directory / "near"
    folder.mkdir()
    file = folder / "topology.yaml"
    file.write_text(json.dumps(document))
    worker = WorkerProcess(file, log=folder / "worker.log", options=("--processes", "1"))
    scene.workers.append(worker)
    return worker


def test_a_side_that_nobody_reaches_is_replaced(watched):
    watched.east.proxy.black_hole()
    began = time.monotonic()
    wait_until(
        lambda: watched.operator.role().state == "promoted",
        timeout_seconds=150.0,
        describe=lambda: f"a promotion, but: {watched.operator.role()}",
    )
    assert time.monotonic() - began >= AFTER_SECONDS
    role = watched.operator.role()
    assert (role.active, role.epoch) == ("west", 1)
    assert role.by.startswith("witness@")


@pytest.mark.parametrize("lost", ["both", "to-client", "to-broker"])
def test_a_network_that_is_cut_for_us_alone_replaces_nothing(watched, lost):
    near = near_worker(watched)
    wait_until(lambda: near.get("/livez"), timeout_seconds=60.0, describe="a worker near it")
    began = time.time()
    watched.east.proxy.black_hole(lost)
    seen_since(watched, began + AFTER_SECONDS / 2)  # somebody goes on to see it
    stays(watched, 2 * AFTER_SECONDS)


def test_a_primary_that_flaps_is_not_replaced(watched):
    until = time.monotonic() + 4 * AFTER_SECONDS
    while time.monotonic() < until:
        watched.east.proxy.black_hole()
        stays(watched, 0.6 * AFTER_SECONDS)
        watched.east.proxy.heal()
        seen_since(watched, time.time())
    assert epoch(watched) == 0


def test_a_primary_that_is_slow_but_answers_is_not_replaced(watched):
    # Each answer takes more than half a second and a look needs some of them: more than the interval.
    watched.east.proxy.latency(0.3)
    stays(watched, 3 * AFTER_SECONDS)
    watched.east.proxy.heal()
    began = time.time()
    seen_since(watched, began)
