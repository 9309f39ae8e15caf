"""Jepsen's Kafka workloads through a flow: what readers of the copies are given while things break.

Queue, aborts and list-append: a list is a partition, an append is a write to it, and a read is a poll of
its copy on the other cluster, inside the transaction that then appends. Beside what the checker always
looks for: polls that skip or go back, records that were shown and are not there in the end, aborted ones
(G1a), and circles of reads (G1c). Circles of writes alone (G0) are Kafka's own rule.
"""

import pytest
from nemesis import Nemesis

from replicator.testing import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

FLOW = "east->west"
SECONDS = 60.0
SEEDS = (1, 2)


@pytest.fixture
def pair(clusters, scene):
    """A flow between clusters behind proxies, with two workers; the target has three brokers."""
    (east,) = clusters("east", proxied=True)
    (west,) = clusters("west", brokers=3, proxied=True)
    scene.active_passive(east, west)
    scene.worker()
    scene.worker()
    first = scene.writer(east, rate=100)
    scene.copying(FLOW)
    first.stop()
    return east, west


def broken_and_judged(scene, pair, seed, pollers):
    """Sixty seconds of faults, then the verdict over everything that readers were given."""
    nemesis = Nemesis(scene, *pair, seed=seed)
    nemesis.rage(seconds=SECONDS)
    scene.stop_writing()
    wait_until(
        lambda: scene.lag() == 0,
        timeout_seconds=240.0, interval_seconds=1.0,
        describe=lambda: f"nothing left to copy after {nemesis.done}",
    )  # fmt: skip
    for poller in pollers:
        poller.stop()
    report = scene.settled(timeout_seconds=240.0)
    print(seed, nemesis.done, report.paragraph())  # noqa: T201  figures of a long run
    assert report.counts["polled"] > 500, report.paragraph()


@pytest.mark.parametrize("seed", SEEDS)
def test_queue(scene, pair, seed):
    east, west = pair
    pollers = [scene.poller(west).start() for _ in range(2)]
    reader = scene.reader(west, f"{scene.name}-queue")
    for _ in range(2):
        scene.writer(east, rate=150)
    broken_and_judged(scene, pair, seed, pollers)
    reader.stop()


@pytest.mark.parametrize("seed", SEEDS)
def test_abort(scene, pair, seed):
    east, west = pair
    pollers = [scene.poller(west).start() for _ in range(2)]
    for _ in range(3):
        scene.writer(east, rate=100, transactional=True, abort_ratio=0.5)
    broken_and_judged(scene, pair, seed, pollers)


@pytest.mark.parametrize("seed", SEEDS)
def test_list_append(scene, pair, seed):
    east, west = pair
    inside = [scene.poller(west) for _ in range(4)]
    for poller in inside:
        scene.writer(east, rate=100, transactional=True, abort_ratio=0.2, between=poller.poll)
    broken_and_judged(scene, pair, seed, inside)
