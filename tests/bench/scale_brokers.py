"""A pair of real brokers with many topics: a first apply, rounds that find nothing, and one status."""

import asyncio
import logging
import math
import resource
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

import structlog
from confluent_kafka.admin import NewTopic
from scale import TRIED_AGAIN

from replicator.backoff import Backoff
from replicator.clock import SystemClock
from replicator.control.controller.bootstrap import bootstrap_pair
from replicator.control.controller.controller import PairController
from replicator.control.status.collect import collect_status
from replicator.errors import ReplicatorError, UnreachableError
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.policy.values import LinkPolicy, Selection
from replicator.testing import LocalCluster, start_all
from replicator.topology.plan import ClusterPlan, FlowPlan, LinkPlan, Plan

ROUNDS = 10
FILES_OF_PARTITION = 3.5
"""A log and two indexes, and now and then a snapshot of its producers: brokers keep them open."""
_HEAP_MEGABYTES = 2048
"""Of each broker. With 400 a broker that has made 10,000 topics collects garbage for minutes: every new topic lists all logs."""
_TICK_SECONDS = 0.001
MOST_FAILURES = 20
PAUSES = Backoff(1.0, 10.0)

_T = TypeVar("_T")


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


class Retries:
    """Tries again after errors that pass, as a worker does, and counts how often.

    Brokers answer late right after thousands of topics were created.
    """

    def __init__(self, pauses: Backoff = PAUSES) -> None:
        self._pauses = pauses
        self.count = 0

    async def until_done(self, attempt: Callable[[], Awaitable[_T]]) -> _T:
        """The result of the first attempt that succeeds.

        Raises:
            ReplicatorError: one that does not pass, or the last of MOST_FAILURES in a row.
        """
        failures = 0
        while True:
            try:
                return await attempt()
            except ReplicatorError as error:
                failures += 1
                if not error.retriable or failures > MOST_FAILURES:
                    raise
                self.count += 1
                print(f"tried again: {error.paragraph()}", file=sys.stderr, flush=True)
            await asyncio.sleep(self._pauses.seconds(failures))


def measured_on_brokers(topics: int, partitions: int = 4) -> dict[str, float]:
    """Milliseconds of each step, and how often it was tried again; brokers enough for that many open files."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    brokers = math.ceil(topics * partitions * FILES_OF_PARTITION / files)
    source, target = (
        LocalCluster(name, brokers=brokers, heap_megabytes=_HEAP_MEGABYTES)
        for name in ("east", "west")
    )
    start_all([source, target])
    try:
        wanted = [NewTopic(f"topic-{number:05d}", partitions, 1) for number in range(topics)]
        for at in range(0, topics, 100):
            for made in source.admin().create_topics(wanted[at : at + 100]).values():
                made.result(60)
        return asyncio.run(_measured(_plan(source, target), topics))
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


async def _measured(plan: Plan, topics: int) -> dict[str, float]:
    (pair,) = plan.pairs
    steps: dict[str, float] = {}
    loop, retries = Watch(), Retries()
    ticking = asyncio.create_task(loop.run())

    @contextmanager
    def timed(step: str, times: int = 1) -> Iterator[None]:
        loop.worst_seconds, retries.count = 0.0, 0
        began, used = time.perf_counter(), time.process_time()
        yield
        steps[step] = (time.perf_counter() - began) / times * 1000
        steps[f"{step}: CPU of this process"] = (time.process_time() - used) / times * 1000
        steps[f"{step}: longest step on the event loop"] = loop.worst_seconds * 1000
        steps[f"{step}: {TRIED_AGAIN}"] = retries.count

    with (
        ClusterAdmin(pair.source, client_id="scale") as east,
        ClusterAdmin(pair.target, client_id="scale") as west,
    ):
        admins = {"source_admin": east, "target_admin": west}
        with timed("bootstrap"):
            await retries.until_done(
                lambda: asyncio.to_thread(
                    bootstrap_pair,
                    plan=plan, pair=pair, clock=SystemClock(), client_id="scale", **admins,
                )
            )  # fmt: skip
        controller = PairController(pair, plan, clock=SystemClock(), client_id="scale", **admins)
        try:
            with timed("first apply"):
                done = await retries.until_done(partial(controller.run_once, all_settings=True))
            with timed("rounds until nothing is left to do"):
                while done.actions:
                    done = await retries.until_done(controller.run_once)
            for _ in range(5):
                await retries.until_done(controller.run_once)
            with timed("a round that finds nothing", ROUNDS):
                for _ in range(ROUNDS):
                    assert not (await retries.until_done(controller.run_once)).actions
        finally:
            controller.close()
    with timed("one status"):
        await retries.until_done(partial(_status_of_all, plan, topics))
    ticking.cancel()
    return steps


async def _status_of_all(plan: Plan, topics: int) -> None:
    """Asks for the status; one of a cluster that did not answer is no measurement."""
    (flow,) = (await asyncio.to_thread(collect_status, plan))["flows"]
    if flow["state"] == "failed" or len(flow["topics"]) != topics:
        raise UnreachableError(
            f"the status has {len(flow['topics'])} of {topics} topics: {flow['reason']}"
        )
