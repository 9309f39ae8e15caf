"""Writes down source data that was given up, on the target, where the next operator will look."""

import queue
import secrets
import threading

import structlog

from replicator.clock import Clock
from replicator.control.store import records
from replicator.dataplane.transport.messages import LostRange
from replicator.errors import ReplicatorError
from replicator.identifiers import control_topic, parse_flow_id
from replicator.kafka.log_writer import LogWriter
from replicator.topology.plan import Plan

log = structlog.get_logger("control")


class GapJournal:
    """Takes gaps from any thread and writes them in its own, so that no lane waits for it."""

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock
        self._queue: queue.SimpleQueue[tuple[Plan, LostRange] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="gap-journal", daemon=True)
        self._thread.start()

    def note(self, plan: Plan, gap: LostRange) -> None:
        """Queues one gap."""
        self._queue.put((plan, gap))

    def close(self) -> None:
        """Writes what is queued, for a few seconds at most."""
        self._queue.put(None)
        self._thread.join(5.0)

    def _run(self) -> None:
        while True:
            item = self._queue.get()
            if item is None:
                return
            plan, gap = item
            try:
                self._write(plan, gap)
            except ReplicatorError as error:
                log.warning("a gap could not be journalled", topic=gap.topic,
                            partition=gap.partition, error=error.message)  # fmt: skip

    def _write(self, plan: Plan, gap: LostRange) -> None:
        source, target = parse_flow_id(gap.pair)
        record = records.GapTaken(
            source=source,
            topic=gap.topic,
            partition=gap.partition,
            id=secrets.token_hex(4),
            at_ms=int(self._clock.now() * 1000),
            detail=gap.detail,
            lost=records.Lost(from_offset=gap.lost_from, to_offset=gap.lost_to),
        )
        with LogWriter(
            plan.cluster(target),
            control_topic(plan.topology),
            client_id=f"replicator-{plan.topology}-gaps",
        ) as writer:
            writer.write([record.encode()])
