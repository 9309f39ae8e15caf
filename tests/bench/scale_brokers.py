"""A pair of real brokers with many topics: a first apply, rounds that find nothing, and one status."""

import asyncio
import logging
import math
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager

import structlog
from confluent_kafka.admin import NewTopic

from replicator.clock import SystemClock
from replicator.control.controller.bootstrap import bootstrap_pair
from replicator.control.controller.controller import PairController
from replicator.control.status.collect import collect_status
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.policy.values import LinkPolicy, Selection
from replicator.testing import LocalCluster, start_all
from replicator.topology.plan import ClusterPlan, FlowPlan, LinkPlan, Plan

ROUNDS = 10
FILES_OF_PARTITION = 3.5
"""A log and two indexes, and now and then a snapshot of its producers: brokers keep them open."""
_TICK_SECONDS = 0.001


class Watch:
    """Notes the longest step on the event loop, in CPU time of its thread: waiting does not count."""

    def __init__(self) -> None:
        self.worst_seconds = 0.0

    async def run(self) -> None:
        """Ticks until cancelled."""
        while True:
            began = time.thread_time()
            await asyncio.sleep(_TICK_SECONDS)
            held = time.thread_time() - began
            self.worst_seconds = max(self.worst_seconds, held)


def measured_on_brokers(topics: int, partitions: int = 4) -> dict[str, float]:
    """Milliseconds of each step; each side has as many brokers as may hold that many files open."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    brokers = math.ceil(topics * partitions * FILES_OF_PARTITION / files)
    source, target = (LocalCluster(name, brokers=brokers) for name in ("east", "west"))
    start_all([source, target])
    try:
        wanted = [NewTopic(f"topic-{number:05d}", partitions, 1) for number in range(topics)]
        for at in range(0, topics, 100):
            for made in source.admin().create_topics(wanted[at : at + 100]).values():
                made.result(60)
        return asyncio.run(_measured(_plan(source, target)))
    finally:
        source.stop()
        target.stop()


def _plan(source: LocalCluster, target: LocalCluster) -> Plan:
    flow = FlowPlan(
        "one", "east", "west", LinkPolicy(Selection(("topic-*",)), Selection()), ("west",)
    )
    clusters = tuple(
        ClusterPlan(one.name, tuple(one.bootstrap_servers)) for one in (source, target)
    )
    link = LinkPlan("one", "active-passive", ("east", "west"), "east", None, (flow,))
    return Plan("scale", clusters, (link,), "hash")


async def _measured(plan: Plan) -> dict[str, float]:
    (pair,) = plan.pairs
    steps: dict[str, float] = {}
    loop = Watch()
    ticking = asyncio.create_task(loop.run())

    @contextmanager
    def timed(step: str, times: int = 1) -> Iterator[None]:
        loop.worst_seconds = 0.0
        began, used = time.perf_counter(), time.process_time()
        yield
        steps[step] = (time.perf_counter() - began) / times * 1000
        steps[f"{step}: CPU of this process"] = (time.process_time() - used) / times * 1000
        steps[f"{step}: longest step on the event loop"] = loop.worst_seconds * 1000

    with (
        ClusterAdmin(pair.source, client_id="scale") as east,
        ClusterAdmin(pair.target, client_id="scale") as west,
    ):
        admins = {"source_admin": east, "target_admin": west}
        await asyncio.to_thread(
            bootstrap_pair,
            plan=plan, pair=pair, clock=SystemClock(), client_id="scale", **admins,
        )  # fmt: skip
        controller = PairController(pair, plan, clock=SystemClock(), client_id="scale", **admins)
        try:
            with timed("first apply"):
                done = await controller.run_once(all_settings=True)
            while done.actions:
                done = await controller.run_once()
            for _ in range(5):
                await controller.run_once()
            with timed("a round that finds nothing", ROUNDS):
                for _ in range(ROUNDS):
                    assert not (await controller.run_once()).actions
        finally:
            controller.close()
    with timed("one status"):
        await asyncio.to_thread(collect_status, plan)
    ticking.cancel()
    return steps
