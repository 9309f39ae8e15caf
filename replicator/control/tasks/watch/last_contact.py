"""Periodic task: how far the source had come when it last answered, kept on the target for a failover.

When the source is lost, this is the last that is known of it: what a failover loses is stated from it.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from replicator.blocking import finished
from replicator.control.records.role_records import ContactRecord, TopicContact
from replicator.control.store.state import ControlState
from replicator.control.tasks.task import TaskContext
from replicator.control.tasks.watch.adaptive_interval import AdaptiveInterval
from replicator.identifiers import TopicPartition, is_canary_topic
from replicator.problem import Problem
from replicator.topology.plan import FlowPlan

if TYPE_CHECKING:
    from replicator.wire.requests.log_ends import LogEnds

INTERVAL_SECONDS = 2.0
QUIET_SECONDS = 10.0
"""A source on which nothing moves is looked at ever less often, and written about at least this often."""

ANSWER_SECONDS = 5.0

LEAST_PACE = 0.01
"""Records per second below which a topic counts as quiet."""


class LastContactTask:
    """A periodic task, see ``task.PeriodicTask``."""

    name = "last contact"
    interval_seconds = INTERVAL_SECONDS

    def __init__(self, context: TaskContext, flows: tuple[FlowPlan, ...]) -> None:
        self._context = context
        self._flows = flows
        self._last: dict[str, ContactRecord] = {}
        self._ends: dict[str, LogEnds] = {}
        self._interval = AdaptiveInterval(
            pace_seconds=INTERVAL_SECONDS, slowest_seconds=QUIET_SECONDS
        )

    async def run(self) -> tuple[Problem, ...]:
        """Looks at the ends of every topic and writes them down where anything moved."""
        now = self._context.clock.monotonic()
        if not self._interval.due(now):
            return ()
        records, quiet = await finished(self._look)
        self._interval.looked(now, quiet=quiet)
        if records:
            await self._context.store(records)
            self._last.update({record.link: record for record in records})
        return ()

    def close(self) -> None:
        """Closes its connections."""
        for ends in self._ends.values():
            ends.close()

    def _look(self) -> tuple[list[ContactRecord], bool]:
        """What is to be noted, and whether nothing moved."""
        context, control = self._context, self._context.control()
        found: list[ContactRecord] = []
        quiet = True
        for flow in self._flows:
            sizes = _sizes(control, flow)
            keys = [(topic, number) for topic, count in sizes.items() for number in range(count)]
            if not keys:
                quiet = False  # topics are about to come
                continue
            ends = self._ends_of(flow).read(keys, timeout_seconds=ANSWER_SECONDS)
            # The time of the answer, not of the question: what is written later is not in it.
            at_ms = round(context.clock.now() * 1000)
            if len(ends) < len(keys):
                quiet = False
            if not ends:
                continue
            before = self._last.get(flow.link)
            record = contact(flow, sizes, ends, before, at_ms=at_ms)
            moved = before is None or record.topics != before.topics
            quiet = quiet and not moved
            if before is None or moved or _old(before, at_ms):
                found.append(record)
        return found, quiet

    def _ends_of(self, flow: FlowPlan) -> "LogEnds":
        """What asks for the topics of one flow, which are the same ones from look to look."""
        from replicator.wire.requests.log_ends import (
            LogEnds,  # slow to import, needed where lane 0 is
        )

        if flow.link not in self._ends:
            client_id = f"{self._context.client_id}-contact"
            self._ends[flow.link] = LogEnds(self._context.pair.source, client_id=client_id)
        return self._ends[flow.link]


def _old(record: ContactRecord, at_ms: int) -> bool:
    return at_ms - record.at_ms >= QUIET_SECONDS * 1000


def contact(
    flow: FlowPlan,
    sizes: Mapping[str, int],
    ends: Mapping[TopicPartition, int],
    before: ContactRecord | None,
    *,
    at_ms: int,
) -> ContactRecord:
    """The record for one look: ends, and the pace since the look before. Pure."""
    held = {topic.topic: topic for topic in before.topics} if before is not None else {}
    seconds = (at_ms - before.at_ms) / 1000 if before is not None else 0.0
    topics: list[TopicContact] = []
    for topic, count in sorted(sizes.items()):
        now = tuple(ends.get((topic, number), -1) for number in range(count))
        pace = 0.0
        if topic in held and seconds > 0:
            grown = sum(
                end - before
                for end, before in zip(now, held[topic].ends, strict=False)
                if min(end, before) >= 0
            )
            # The faster of this stretch and the one before: a short lull must not hide a pace.
            pace = max(0.0, grown / seconds, held[topic].records_per_second / 2)
        pace = 0.0 if pace < LEAST_PACE else round(pace, 3)
        same = held.get(topic)
        if same is not None and (same.ends, same.records_per_second) == (now, pace):
            topics.append(same)  # most topics of most looks
        else:
            topics.append(TopicContact(topic=topic, ends=now, records_per_second=pace))
    return ContactRecord(source=flow.source, link=flow.link, at_ms=at_ms, topics=tuple(topics))


def _sizes(control: ControlState, flow: FlowPlan) -> dict[str, int]:
    return {
        record.topic: record.partitions
        for record in control.topics(flow.source, flow.link)
        if record.state == "active" and not is_canary_topic(record.topic)
    }


def last_contact_task(context: TaskContext) -> LastContactTask:
    """The task, for every pair: any link may lose a side."""
    return LastContactTask(context, context.pair.flows)
