"""Periodic task: whether somebody writes on the passive side of a link besides its copies.

Looks at the newest records of target partitions that grew: a copy names its source among its hops, a
record that does not was written there by somebody else. A few records of a few partitions are read
each run, one after the other, so a writer that goes on is found within some runs, at next to no cost.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from replicator.blocking import finished
from replicator.control.tasks.task import TaskContext
from replicator.control.tasks.watch.adaptive_interval import AdaptiveInterval
from replicator.errors import ReplicatorError
from replicator.identifiers import TopicPartition, is_canary_topic
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.kafka.clients.client import Message
from replicator.offsets.translation.probe import PartitionProbe
from replicator.policy.copies.overlap import find_overlap
from replicator.policy.copies.provenance import Arrivals, Headers, find_hops
from replicator.problem import Problem
from replicator.topology.plan import FlowPlan

if TYPE_CHECKING:
    from replicator.batches.registry.copied_ranges import CopiedRanges
    from replicator.wire.requests.log_ends import LogEnds

INTERVAL_SECONDS = 5.0
ANSWER_SECONDS = 5.0
PARTITIONS_A_RUN = 4
RECORDS_A_LOOK = 3
QUIET_SECONDS = 15.0
"""A target on which nothing moves is looked at ever less often, down to this."""

HEADER_ROOM_BYTES = 8192
"""A copy this close to its topic's limit may have lost its header, and proves nothing."""

FORGET_SECONDS = 60.0
"""How long a write that was found is shown after the last one."""


@dataclass(frozen=True, slots=True)
class Foreign:
    """A record on the passive side that is no copy."""

    link: str
    source_topic: str
    topic: str
    partition: int
    offset: int
    at_seconds: float


class SplitBrainTask:
    """A periodic task, see ``task.PeriodicTask``."""

    name = "writes on the passive side"
    interval_seconds = INTERVAL_SECONDS

    def __init__(self, context: TaskContext, flows: tuple[FlowPlan, ...]) -> None:
        self._context = context
        self._arrivals = context.plan.arrivals(context.pair.target.alias)
        self._flows = {str(flow.link): flow for flow in flows}
        client_id = f"{context.client_id}-split-brain"
        self._source = ClusterAdmin(
            context.pair.source, client_id=client_id, timeout_seconds=ANSWER_SECONDS
        )
        self._probe = PartitionProbe(context.pair.target, client_id=client_id, clock=context.clock)
        self._interval = AdaptiveInterval(
            pace_seconds=INTERVAL_SECONDS, slowest_seconds=QUIET_SECONDS
        )
        self._asking: LogEnds | None = None
        self._copied: CopiedRanges | None = None
        self._ends: Mapping[TopicPartition, int] = {}
        self._waiting: dict[TopicPartition, int] = {}
        self._found: dict[TopicPartition, Foreign] = {}

    async def run(self) -> tuple[Problem, ...]:
        """Looks at some partitions that grew; what was found lately is a problem each."""
        return await finished(self._look)

    def close(self) -> None:
        """Closes its connections."""
        if self._asking is not None:
            self._asking.close()
        if self._copied is not None:
            self._copied.close()
        self._probe.close()
        self._source.close()

    def _look(self) -> tuple[Problem, ...]:
        context, now = self._context, self._context.clock.monotonic()
        if not self._interval.due(now):
            return self._problems()
        topics = {
            record.target: record
            for record in context.control().topics(context.pair.source.alias)
            if record.link in self._flows
            and record.state == "active"
            and not is_canary_topic(record.topic)
        }
        keys = [(n, i) for n, record in topics.items() for i in range(record.target_partitions)]
        ends = self._log_ends().read(keys, timeout_seconds=ANSWER_SECONDS)
        quiet = bool(keys) and ends == self._ends and not self._waiting
        self._interval.looked(now, quiet=quiet)
        for key, end in ends.items():
            before = self._ends.get(key)
            if before is not None and end > before:
                self._waiting.setdefault(key, before)
        self._ends = ends
        for key in list(self._waiting)[:PARTITIONS_A_RUN]:
            since = self._waiting.pop(key)
            record = topics.get(key[0])
            if record is None:
                continue
            offset = self._foreign(key, since, ends.get(key, since), record.max_message_bytes)
            if offset is not None:
                self._found[key] = Foreign(record.link, record.topic, *key, offset, now)
        self._found = {
            key: one for key, one in self._found.items() if now - one.at_seconds < FORGET_SECONDS
        }
        return self._problems()

    def _log_ends(self) -> "LogEnds":
        if self._asking is None:
            from replicator.wire.requests.log_ends import (
                LogEnds,  # slow to import, needed where lane 0 is
            )

            client_id = f"{self._context.client_id}-split-brain"
            self._asking = LogEnds(self._context.pair.target, client_id=client_id)
        return self._asking

    def _whole_batches(self) -> "CopiedRanges":
        """Tells copies without a header."""
        if self._copied is None:
            # Slow to import, needed where a record has no header.
            from replicator.batches.registry.copied_ranges import CopiedRanges
            from replicator.batches.registry.producer_registry import ProducerRegistry

            pair, client_id = self._context.pair, f"{self._context.client_id}-split-brain"
            registry = ProducerRegistry(
                pair.target, self._context.plan.topology, client_id=client_id
            )
            self._copied = CopiedRanges(
                pair.target, registry.source_of, blocked=(pair.source.alias,), client_id=client_id
            )
        return self._copied

    def _foreign(self, key: TopicPartition, since: int, end: int, limit: int) -> int | None:
        """The offset of a record among the newest that is no copy."""
        at = max(since, end - RECORDS_A_LOOK)
        for _ in range(RECORDS_A_LOOK):
            message = self._probe.record(*key, at, or_next=True) if at < end else None
            if message is None:
                return None
            offset = message.offset() or 0
            if not (
                _is_copy(message, self._context.pair.source.alias, limit, self._arrivals)
                or self._whole_batches().holds(*key, offset)
            ):
                return offset
            at = offset + 1
        return None

    def _problems(self) -> tuple[Problem, ...]:
        if not self._found:
            return ()
        ends = self._source_ends()
        source, target = self._context.pair.source.alias, self._context.pair.target.alias
        return tuple(
            Problem(
                "SPLIT_BRAIN",
                one.link,
                f"{one.topic}/{one.partition} on {target} has a record at {one.offset} that is no "
                f"copy, while {source} is active (its log ends at "
                f"{ends.get((one.source_topic, one.partition), 'a place that is not known')})",
                f"Find who writes on {target}; 'fencing' with fencePassive keeps writers off there.",
            )
            for one in self._found.values()
        )

    def _source_ends(self) -> Mapping[TopicPartition, int]:
        """Where the source logs end, for the alarm; empty where the source does not answer."""
        keys = [(one.source_topic, one.partition) for one in self._found.values()]
        try:
            return self._source.known_offsets(keys, "latest")
        except ReplicatorError:
            return {}


def _is_copy(message: Message, source: str, limit: int, arrivals: Arrivals) -> bool:
    """Whether a record came over this flow, or may have: one without room for a header proves nothing."""
    try:
        headers = cast("Headers", message.headers() or ())
    except SystemError:
        return True  # a header name that is no text; the library cannot say
    size = len(message.value() or b"") + len(message.key() or b"")
    if find_hops(headers).value is None:
        return size > limit - HEADER_ROOM_BYTES
    return source in arrivals.passed(headers, message.topic() or "", message.partition() or 0)


def split_brain_task(context: TaskContext) -> SplitBrainTask | None:
    """The task, or None where no link of the pair has a passive side that nobody else writes to.

    In a ring every side is the active one of the next link: there its writers belong.
    """
    links = {link.name for link in context.plan.links if link.active is not None and link.standby}
    flows = tuple(
        flow
        for flow in context.pair.flows
        if flow.link in links and not any(_goes_on(flow, other) for other in context.plan.flows)
    )
    return SplitBrainTask(context, flows) if flows else None


def _goes_on(flow: FlowPlan, other: FlowPlan) -> bool:
    return (
        other.source == flow.target
        and find_overlap(flow.policy.topics, other.policy.topics) is not None
    )
