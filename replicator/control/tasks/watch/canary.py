"""Periodic task: one small record per link, now and then, sent through the link's own lanes and timed.

One goes each second while there is reason to look: a controller is new, links began or ceased to
copy, or a canary was late. Where nothing is wrong they are further apart, as most links are idle most of
the time and a canary is then all they do.

Its topic is copied like any other, so the time says what a record of the flow takes now, throttles
and commits included. No canary is sent while its link may not copy; those on their way then are
forgotten, neither timed nor lost.
"""

import json
import secrets
import threading
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field

from replicator.blocking import finished
from replicator.control.store.state import ControlState
from replicator.control.tasks.task import TaskContext
from replicator.control.tasks.watch.canary_clients import CanaryClients
from replicator.errors import AlreadyExistsError, NotFoundError, ReplicatorError
from replicator.formats.lane_stats import LATENCY_BOUNDS_SECONDS
from replicator.identifiers import canary_topic
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.kafka.admin.topics import NewTopicSpec
from replicator.observability.snapshot import TaskMetrics
from replicator.policy.copies.naming import name_problem
from replicator.problem import Problem
from replicator.topology.plan import FlowPlan

INTERVAL_SECONDS = 1.0
CALM_INTERVAL_SECONDS = 5.0
WATCHED_SECONDS = 30.0
"""How long canaries go each second after something that is worth it."""
SLOW_SECONDS = 1.0
LISTEN_SECONDS = 0.9
"""How long a run waits for its canaries; one that comes later is timed by a later run."""
LOST_SECONDS = 30.0
CONFIGS = (
    ("cleanup.policy", "delete"),
    ("retention.ms", str(3600 * 1000)),
    # Retention takes whole segments: without this one they would live for a week.
    ("segment.ms", str(600 * 1000)),
)


@dataclass(slots=True)
class _Canary:
    """The canaries of one flow; ``sent`` are those on their way: number to monotonic time."""

    flow: FlowPlan
    topic: str
    figures: TaskMetrics
    sent: dict[int, float] = field(default_factory=dict)


class CanaryTask:
    """A periodic task, see ``task.PeriodicTask``."""

    name = "canary"
    interval_seconds = INTERVAL_SECONDS

    def __init__(self, context: TaskContext, topics: Mapping[str, FlowPlan]) -> None:
        client_id = f"{context.client_id}-canary"
        pair = context.pair
        self._context = context
        self._source = ClusterAdmin(pair.source, client_id=client_id)
        self._target = ClusterAdmin(pair.target, client_id=client_id)
        self._closing = threading.Event()
        self._line = CanaryClients(
            pair.source, pair.target, self._target,
            client_id=client_id, stopping=self._closing.is_set,
        )  # fmt: skip
        self._canaries = {
            topic: _Canary(flow, topic, context.figures[flow.link])
            for topic, flow in topics.items()
        }
        self._run = secrets.token_hex(6)
        self._number = 0
        self._sent_at = float("-inf")
        self._watched_until = context.clock.monotonic() + WATCHED_SECONDS
        self._moving: set[str] = set()
        self._created = False
        self._busy = threading.Lock()

    async def run(self) -> tuple[Problem, ...]:
        """Sends one canary per link where one is due, and times those that arrive."""
        if not self._due():
            return ()
        try:
            await finished(self._turn)
        except ReplicatorError as error:
            # Not about a cluster: whether one can be worked with, others say.
            error.subject = self._context.pair.id
            raise
        return ()

    def close(self) -> None:
        """Closes its connections once the present run has ended."""
        self._closing.set()
        with self._busy:
            self._line.close()
            self._source.close()
            self._target.close()

    def _due(self) -> bool:
        now = self._context.clock.monotonic()
        return (
            now < self._watched_until
            or now - self._sent_at >= CALM_INTERVAL_SECONDS - INTERVAL_SECONDS / 2
            or any(one.sent for one in self._canaries.values())
        )

    def _watch(self) -> None:
        self._watched_until = self._context.clock.monotonic() + WATCHED_SECONDS

    def _turn(self) -> None:
        with self._busy:
            if self._closing.is_set():
                return
            self._create()
            control = self._context.control()
            moving = [one for one in self._canaries.values() if self._moves(one.flow, control)]
            for one in self._canaries.values():
                if one not in moving:
                    one.sent.clear()
            names = {one.topic for one in moving}
            if names != self._moving:
                self._moving = names
                self._watch()
            self._expire()
            self._send([one for one in moving if self._line.watch(one.topic)])
            self._listen()

    def _create(self) -> None:
        """Makes the topics on the source; the controller makes their copies."""
        if self._created:
            return
        missing = self._canaries.keys() - self._source.describe_topics(self._canaries).keys()
        brokers = len(self._source.describe_cluster().brokers) if missing else 0
        specs = [NewTopicSpec(name, 1, min(3, brokers), CONFIGS) for name in sorted(missing)]
        for error in self._source.create_topics(specs).values() if specs else ():
            if error is not None and not isinstance(error, AlreadyExistsError):
                raise error
        self._source.close()  # seldom needed again, and an open client costs threads that wake up
        self._created = True

    def _moves(self, flow: FlowPlan, control: ControlState) -> bool:
        """Whether records of the canary's topic are copied now, as far as anybody decided."""
        topic = canary_topic(self._context.plan.topology, flow.source, flow.target, flow.link)
        record = control.topic(flow.source, flow.link, topic)
        layout = control.layout(flow.source)
        return (
            record is not None
            and record.state == "active"
            and layout is not None
            and layout.state == "stable"
            and not control.paused(flow.id, flow.link, topic, 0)
        )

    def _send(self, canaries: list[_Canary]) -> None:
        self._number += 1
        self._sent_at = self._context.clock.monotonic()
        at_ms = round(self._context.clock.now() * 1000)
        for one in canaries:
            body = {"v": 1, "link": one.flow.link, "run": self._run, "n": self._number}
            one.sent[self._number] = self._context.clock.monotonic()
            self._line.send(one.topic, json.dumps({**body, "atMs": at_ms}).encode())
        try:
            self._line.flush()
        except NotFoundError:
            self._created = False
            raise
        finally:
            for topic in self._line.refused():
                self._canaries[topic].sent.pop(self._number, None)

    def _listen(self) -> None:
        """Until every canary on its way has come, or the time of the run is over."""
        until = self._context.clock.monotonic() + LISTEN_SECONDS
        while any(one.sent for one in self._canaries.values()) and not self._closing.is_set():
            left = until - self._context.clock.monotonic()
            if left <= 0:
                return
            for topic, value in self._line.listen(min(left, 0.1)):
                self._arrived(self._canaries[topic], value)

    def _arrived(self, one: _Canary, value: bytes) -> None:
        sent = one.sent.pop(self._number_of(value), None)
        if sent is None:
            return  # of an earlier controller, or given up
        seconds = max(0.0, self._context.clock.monotonic() - sent)
        if seconds > SLOW_SECONDS:
            self._watch()
        figures = one.figures
        buckets = figures.canary_buckets or [0] * (len(LATENCY_BOUNDS_SECONDS) + 1)
        buckets[bisect_left(LATENCY_BOUNDS_SECONDS, seconds)] += 1
        figures.canary_buckets = buckets
        figures.canary_sum_seconds += seconds
        figures.canary_last_seconds = seconds
        figures.canary_at_ms = round(self._context.clock.now() * 1000)

    def _number_of(self, value: bytes) -> int:
        """Which canary of this run it is; -1 for any other record."""
        try:
            body = json.loads(value)
            return int(body["n"]) if body["run"] == self._run else -1
        except (ValueError, KeyError, TypeError):
            return -1

    def _expire(self) -> None:
        oldest = self._context.clock.monotonic() - LOST_SECONDS
        for one in self._canaries.values():
            late = [number for number, at in one.sent.items() if at < oldest]
            for number in late:
                del one.sent[number]
            one.figures.canary_lost += len(late)


def canary_task(context: TaskContext) -> CanaryTask | None:
    """The task; links without metrics, or whose canary topic would have no legal name, have none."""
    topics = {
        canary_topic(context.plan.topology, flow.source, flow.target, flow.link): flow
        for flow in context.pair.flows
        if flow.link in context.figures
    }
    legal = {name: flow for name, flow in topics.items() if name_problem(name) is None}
    return CanaryTask(context, legal) if legal else None
