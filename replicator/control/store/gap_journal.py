"""Writes down source data that was given up, on the target, where the next operator will look."""

import queue
import secrets
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence

import structlog

from replicator.backoff import Backoff
from replicator.clock import Clock
from replicator.control.records.pair_records import GapTaken, Lost
from replicator.control.store.state import ControlState
from replicator.dataplane.transport.messages import LostRange
from replicator.errors import ReplicatorError
from replicator.identifiers import control_topic, parse_flow_id
from replicator.kafka.logs.log_writer import LogWriter
from replicator.topology.plan import Plan

log = structlog.get_logger("control")

KEPT_GAPS = 1000
KEPT_DAYS = 400
"""The newest so many gaps of each source are kept, for so long: the control topic must not grow for ever."""

RETRY = Backoff(1.0, 30.0)


def outdated_gaps(gaps: Iterable[GapTaken], *, now_ms: int) -> tuple[GapTaken, ...]:
    """The gaps of one source that are not kept any longer. Pure."""
    newest = sorted(gaps, key=lambda gap: gap.at_ms, reverse=True)
    oldest_ms = now_ms - KEPT_DAYS * 24 * 3600 * 1000
    return tuple(
        gap for place, gap in enumerate(newest) if place >= KEPT_GAPS or gap.at_ms < oldest_ms
    )


class GapJournal:
    """Takes gaps from any thread and writes them in its own, so that no lane waits for it.

    A gap is written as often as it takes: a target that is silent loses none while the worker runs. What
    a worker that is killed had not written stands in the detail of the partition's checkpoint.
    """

    def __init__(
        self, *, clock: Clock, known: Callable[[], Mapping[str, ControlState]] = dict
    ) -> None:
        """``known`` gives the control topics that are followed, by cluster: outdated gaps are among them."""
        self._clock = clock
        self._known = known
        self._queue: queue.SimpleQueue[tuple[Plan, LostRange] | None] = queue.SimpleQueue()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="gap-journal", daemon=True)
        self._thread.start()

    def note(self, plan: Plan, gap: LostRange) -> None:
        """Queues one gap."""
        self._queue.put((plan, gap))

    def close(self) -> None:
        """Writes what is queued, for a few seconds at most."""
        self._queue.put(None)
        self._closing.set()
        self._thread.join(5.0)

    def _run(self) -> None:
        while (item := self._queue.get()) is not None:
            plan, gap = item
            at_ms = int(self._clock.now() * 1000)
            failures = 0
            while not self._written(plan, gap, at_ms, failures):
                failures += 1
                if self._closing.wait(RETRY.seconds(failures)):
                    self._written(plan, gap, at_ms, failures)
                    break

    def _written(self, plan: Plan, gap: LostRange, at_ms: int, failures: int) -> bool:
        try:
            self._write(plan, gap, at_ms)
        except ReplicatorError as error:
            if not failures:
                log.warning("a gap is not journalled yet", topic=gap.topic,
                            partition=gap.partition, error=error.message)  # fmt: skip
            return False
        if failures:
            log.info("a gap is journalled at last", topic=gap.topic, partition=gap.partition)
        return True

    def _write(self, plan: Plan, gap: LostRange, at_ms: int) -> None:
        source, target = parse_flow_id(gap.pair)
        record = GapTaken(
            source=source,
            topic=gap.topic,
            partition=gap.partition,
            id=secrets.token_hex(4),
            at_ms=at_ms,
            detail=gap.detail,
            lost=Lost(from_offset=gap.lost_from, to_offset=gap.lost_to),
        )
        with LogWriter(
            plan.cluster(target),
            control_topic(plan.topology),
            client_id=f"replicator-{plan.topology}-gaps",
        ) as writer:
            writer.write([record.encode(), *self._outdated(target, [record])])

    def _outdated(self, target: str, fresh: Sequence[GapTaken]) -> list[tuple[bytes, bytes | None]]:
        state = self._known().get(target)
        if state is None:
            return []
        (first, *_) = fresh
        held = (*state.gaps_taken(first.source), *fresh)
        now_ms = int(self._clock.now() * 1000)
        return [gap.tombstone() for gap in outdated_gaps(held, now_ms=now_ms)]
