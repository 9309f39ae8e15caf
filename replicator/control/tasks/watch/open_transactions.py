"""Periodic task: open transactions at the source that records wait behind, and since when.

A transaction that its writer neither commits nor aborts holds up every reader of committed records. It
is no fault of the flow and nothing else shows it: what can be read was copied.
"""

from typing import TYPE_CHECKING

from replicator.blocking import finished
from replicator.control.tasks.task import TaskContext
from replicator.errors import ReplicatorError, UnreachableError
from replicator.identifiers import TopicPartition, is_canary_topic
from replicator.observability.snapshot import OpenTransactionMetrics
from replicator.problem import Problem
from replicator.topology.plan import FlowPlan

if TYPE_CHECKING:
    from replicator.wire.requests.log_ends import LogEnds
    from replicator.wire.requests.open_transactions import OpenTransaction

INTERVAL_SECONDS = 5.0
ALARM_SECONDS = 60.0
"""A transaction that is open for so long is a problem; Kafka's own default ends one after a minute."""

MOST_ASKED = 200
"""Partitions whose transactions are looked up in one run."""

REMEDY = (
    "End the transaction: find the writer with this transactional id, or abort it with "
    "'kafka-transactions.sh abort'. What it holds back is copied then."
)


class OpenTransactionsTask:
    """A periodic task, see ``task.PeriodicTask``."""

    name = "open transactions"
    interval_seconds = INTERVAL_SECONDS

    def __init__(self, context: TaskContext) -> None:
        self._context = context
        self._ends: tuple[LogEnds, LogEnds] | None = None
        self._held: dict[TopicPartition, tuple[int, int]] = {}

    async def run(self) -> tuple[Problem, ...]:
        """Looks, sets the figures of each link, and returns a problem for each that is open too long."""
        return await finished(self._look)

    def close(self) -> None:
        """Closes its connections."""
        for ends in self._ends or ():
            ends.close()

    def _look(self) -> tuple[Problem, ...]:
        context = self._context
        keys = {flow: self._partitions(flow) for flow in context.pair.flows}
        high, stable = self._read([key for places in keys.values() for key in places])
        now_ms = int(context.clock.now() * 1000)
        before, self._held = self._held, {}
        for key, offset in stable.items():
            if offset < high.get(key, 0):
                known = before.get(key, (-1, 0))
                self._held[key] = known if known[0] == offset else (offset, now_ms)
        # One look is not enough: a healthy transaction is over by the next.
        lasting = [key for key in self._held if key in before and before[key] == self._held[key]]
        found = self._found(lasting)
        problems: list[Problem] = []
        for flow, places in keys.items():
            mine = {key: found[key] for key in places if key in found}
            waiting = sum(high[key] - stable[key] for key in mine)
            oldest_ms = min((each.known_since_ms for each in mine.values()), default=now_ms)
            context.figures[flow.link].open_transactions = OpenTransactionMetrics(
                seconds=max(0.0, (now_ms - oldest_ms) / 1000), records=waiting
            )
            problems += [
                open_too_long(key, each, high[key] - stable[key], now_ms=now_ms)
                for key, each in mine.items()
                if now_ms - each.known_since_ms >= ALARM_SECONDS * 1000
            ]
        return tuple(problems)

    def _partitions(self, flow: FlowPlan) -> list[TopicPartition]:
        return [
            (record.topic, number)
            for record in self._context.control().topics(flow.source, flow.link)
            if record.state == "active" and not is_canary_topic(record.topic)
            for number in range(record.partitions)
        ]

    def _read(
        self, keys: list[TopicPartition]
    ) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
        """High watermarks, and last stable offsets that were read after them."""
        from replicator.wire.requests.log_ends import LogEnds  # slow to import

        if self._ends is None:
            source, client_id = self._context.pair.source, f"{self._context.client_id}-open"
            self._ends = (
                LogEnds(source, client_id=client_id),
                LogEnds(source, client_id=client_id, isolation="read_committed"),
            )
        high, stable = self._ends
        return high.read(keys), stable.read(keys)

    def _found(self, keys: list[TopicPartition]) -> "dict[TopicPartition, OpenTransaction]":
        """The transaction of each partition; nameless where the source does not tell it."""
        from replicator.wire.requests.open_transactions import (  # slow to import
            OpenTransaction,
            oldest_by_partition,
            open_transactions,
        )

        nameless = {
            (topic, number): OpenTransaction(
                topic, number, self._held[topic, number][0], -1, self._held[topic, number][1]
            )
            for topic, number in keys
        }
        try:
            named = open_transactions(
                self._context.pair.source,
                keys[:MOST_ASKED],
                client_id=f"{self._context.client_id}-open",
            )
        except UnreachableError:
            raise
        except ReplicatorError:
            return nameless
        return nameless | oldest_by_partition(named)


def open_transactions_task(context: TaskContext) -> OpenTransactionsTask:
    """The task; every pair has it."""
    return OpenTransactionsTask(context)


def open_too_long(
    place: TopicPartition, found: "OpenTransaction", records: int, *, now_ms: int
) -> Problem:
    """What people read of one partition."""
    return Problem(
        "SOURCE_TRANSACTION_OPEN",
        f"{place[0]}/{place[1]}",
        f"{records} records wait behind an {found.age_words(now_ms=now_ms)}",
        REMEDY,
    )
