"""``stream``: a flow as a Structured Streaming query, for as long as the topology wants it so.

The driver takes the partitions from the lanes, writes its worker record, takes new partitions as they
appear, and returns all of them when it ends: lanes or another stream go on at the checkpoints. The
partitions of a driver that dies stay assigned to it until the next stream takes them, or the workers
do once the topology says ``runtime: workers``.
"""

import contextlib
import os
import secrets
import socket
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from replicator.clock import Clock
from replicator.control.backfill.facts import read_backfill_facts
from replicator.control.backfill.handover import (
    hand_back,
    read_control_past_open_transactions,
    take_from_lanes,
)
from replicator.control.backfill.rights import require_rights
from replicator.control.backfill.stream_partitions import copied_by_streams, partitions_to_take
from replicator.control.records.pair_records import BackfillRecord
from replicator.control.records.worker_records import FlowRates
from replicator.control.roles.read import in_force
from replicator.control.store.state import ControlState
from replicator.control.store.worker_record import WorkerRecordWriter
from replicator.control.worker.pair_view import WorkerIdentity
from replicator.errors import ClusterError, InputError, UnknownOutcomeError
from replicator.formats.checkpoint import Checkpoint
from replicator.identifiers import TopicPartition, stream_id
from replicator.kafka.logs.checkpoint_log import read_checkpoints
from replicator.spark.base.failures import as_replicator_error
from replicator.spark.base.progress import LINE_SECONDS
from replicator.spark.stream.copy_source import CLIENT_ID, FORMAT, CopySource
from replicator.spark.stream.moved_counts import MovedCounts
from replicator.spark.stream.runtime import require_spark_runtime, streamed_flows
from replicator.topology.file.load import require_plan
from replicator.topology.plan import PairPlan, Plan, find_pair

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

RECORD_SECONDS = 5.0
LOOK_SECONDS = 0.5
RETRY_SECONDS = 3.0

log = structlog.get_logger("spark")


class FlowStream:
    """One driver; ``serve`` blocks until it is stopped, or until Spark no longer runs the flow."""

    def __init__(
        self, session: "SparkSession", topology_file: Path, flow: str, *, by: str, clock: Clock
    ) -> None:
        """Reads the topology.

        Raises:
            InputError: no such flow, or Spark runs none of its links.
        """
        self._session = session
        self._file = topology_file
        self._flow = flow
        self._by = by
        self._clock = clock
        self._plan = in_force(require_plan(topology_file))
        self._pair = find_pair(self._plan, flow)
        self._run = f"stream.{secrets.token_hex(4)}"
        self._moved = MovedCounts()
        self._told_at = 0.0
        self._query: StreamingQuery | None = None
        self.returned = False
        """Whether its partitions were given back when it ended."""
        require_spark_runtime(self._pair)

    @property
    def copied(self) -> tuple[int, int]:
        """Records and bytes that are committed on the target, within micro-batches too."""
        return self._moved.total

    def serve(self, *, interval_seconds: float, stopping: threading.Event) -> None:
        """Runs until ``stopping`` is set, the topology says ``workers``, or another stream takes over.

        Raises:
            NotAuthorizedError: a right is missing; nothing was taken from the workers.
            ReplicatorError: it cannot go on; its partitions stay assigned to it until the next stream.
        """
        control = read_control_past_open_transactions(self._plan, self._pair)
        topics = {
            record.topic: record.target
            for flow in streamed_flows(self._pair)
            for record in control.topics(flow.source, flow.link)
        }
        require_rights(self._plan, self._pair, topics)
        identity = WorkerIdentity(
            id=stream_id(socket.gethostname(), os.getpid()),
            host=socket.gethostname(), pid=os.getpid(), http="", instance_id=None,
        )  # fmt: skip
        record = WorkerRecordWriter(
            self._plan, self._pair, identity, clock=self._clock, client_id="replicator-stream"
        )
        with tempfile.TemporaryDirectory(prefix="replicator-stream-") as folder:
            try:
                self._moved.begin(self._checkpoints())
                self._take(read_control_past_open_transactions(self._plan, self._pair))
                self._watch(Path(folder), interval_seconds, stopping, record)
            finally:
                with contextlib.suppress(Exception):  # the driver's own end may have ended it
                    if self._query is not None:
                        self._query.stop()
                self._give_back()
                record.close()

    def _watch(self, folder: Path, interval_seconds: float, stopping: threading.Event,
               record: WorkerRecordWriter) -> None:  # fmt: skip
        """Restarts the query when it ends; a cluster that does not answer for a while ends nothing."""
        recorded_at = self._clock.monotonic() - RECORD_SECONDS
        batches = 0
        while not stopping.wait(LOOK_SECONDS):
            now = self._clock.monotonic()
            try:
                if self._query is None or not self._query.isActive:
                    if self._failed() and stopping.wait(RETRY_SECONDS):
                        return
                    batches += 1
                    self._query = self._start(folder / str(batches), interval_seconds)
                if now - recorded_at >= RECORD_SECONDS:
                    if not self._still_ours():
                        return
                    record.write(lanes=(), rates=self._rates(now - recorded_at))
                    recorded_at = now
            except (ClusterError, UnknownOutcomeError) as error:
                log.warning("stream waits for its clusters", flow=self._flow, error=error.message)
                stopping.wait(
                    RETRY_SECONDS
                )  # they are unreachable: asking again at once is useless

    def _failed(self) -> bool:
        """Whether the last query failed; logs why. The next one goes on at the checkpoints."""
        query, self._query = self._query, None
        failure = None if query is None else query.exception()
        if failure is None:
            return False
        error = as_replicator_error(str(failure))
        log.warning("micro-batch failed", flow=self._flow, error=error.paragraph())
        return True

    def _still_ours(self) -> bool:
        """Reads the topology and the control topic again; takes what is new."""
        try:
            plan = in_force(require_plan(self._file))  # a role change ends it like an edit
            pair = find_pair(plan, self._flow)
            require_spark_runtime(pair)
        except InputError as error:
            log.info("the flow is not Spark's any more", flow=self._flow, reason=error.message)
            return False
        self._plan, self._pair = plan, pair
        control = read_control_past_open_transactions(plan, pair)
        others = [
            backfill
            for backfill in copied_by_streams(control, pair.source.alias)
            if backfill.run != self._run and backfill.link in _links(pair)
        ]
        if others:
            log.info("another stream took the flow over", flow=self._flow, run=others[0].run)
            return False
        self._take(control)
        self._count(control)
        return True

    def _checkpoints(self) -> dict[TopicPartition, Checkpoint]:
        return read_checkpoints(self._plan.topology, self._pair, client_id=CLIENT_ID)

    def _count(self, control: ControlState) -> None:
        """Takes in what a running micro-batch has committed, and says so now and then."""
        held = copied_by_streams(control, self._pair.source.alias)
        links = {_key(each): each.link for each in held if each.run == self._run}
        self._moved.look(self._checkpoints(), links)
        now = self._clock.monotonic()
        if now - self._told_at >= LINE_SECONDS:
            self._told_at = now
            records, size = self._moved.total
            log.info("copied so far", flow=self._flow, records=records, bytes=size)

    def _take(self, control: ControlState) -> None:
        at_ms = round(self._clock.now() * 1000)
        flows = streamed_flows(self._pair)
        backfills = partitions_to_take(flows, control, run=self._run, by=self._by, at_ms=at_ms)
        if not backfills:
            return
        facts = read_backfill_facts(self._plan, self._pair, flows, control)
        latest = {str(flow.link) for flow in flows if flow.policy.start_from.kind == "latest"}
        placed: list[BackfillRecord] = []
        for backfill in backfills:
            record = control.topic(backfill.source, backfill.link, backfill.topic)
            late = record is not None and record.is_late(backfill.partition)
            at_end = backfill.link in latest and not late
            start = (facts.ends if at_end else facts.starts).get(_key(backfill))
            if start is not None:  # else its leader did not answer: it joins later
                placed.append(backfill.model_copy(update={"start": start}))
        take_from_lanes(self._plan, self._pair, placed, clock=self._clock)
        log.info("partitions taken from lanes", flow=self._flow, partitions=len(placed))

    def _start(self, folder: Path, interval_seconds: float) -> "StreamingQuery":
        self._session.dataSource.register(CopySource)
        rows = (
            self._session.readStream.format(FORMAT)
            .option("topology", str(self._file))
            .option("flow", self._flow)
            .option("run", self._run)
            .option("tasks", str(self._session.sparkContext.defaultParallelism))
            .load()
        )
        # Spark's own offsets are not used: the checkpoints on the target decide.
        return (
            rows.writeStream.queryName(f"replicator stream {self._flow}")
            .option("checkpointLocation", str(folder / "offsets"))
            .trigger(processingTime=f"{interval_seconds:g} seconds")
            .foreachBatch(self._note)
            .start()
        )

    def _note(self, rows: "DataFrame", _batch: int) -> None:
        for row in rows.collect():
            key = row.topic, row.partition
            self._moved.finish(row.link, key, row.position, (row.records, row.bytes))
            if row.problem:
                log.error("partition stopped", flow=self._flow, topic=row.topic,
                          partition=row.partition, problem=row.problem)  # fmt: skip

    def _rates(self, elapsed_seconds: float) -> tuple[FlowRates, ...]:
        moved = self._moved.take()
        return tuple(
            FlowRates(
                link=link,
                records_per_second=round(moved.get(link, (0, 0))[0] / elapsed_seconds, 1),
                bytes_per_second=round(moved.get(link, (0, 0))[1] / elapsed_seconds, 1),
            )
            for link in sorted(_links(self._pair))
        )

    def _give_back(self) -> None:
        control = read_control_past_open_transactions(self._plan, self._pair)
        held = copied_by_streams(control, self._pair.source.alias)
        mine = [backfill for backfill in held if backfill.run == self._run]
        hand_back(self._plan, self._pair, mine, clock=self._clock)
        self.returned = True
        log.info("partitions returned to lanes", flow=self._flow, partitions=len(mine))


def release_streams(plan: Plan, pair: PairPlan, *, clock: Clock) -> Sequence[BackfillRecord]:
    """Releases the partitions of a stream that died; returns them.

    Raises:
        ReplicatorError: the target does not answer; the same call again goes on.
    """
    held = copied_by_streams(read_control_past_open_transactions(plan, pair), pair.source.alias)
    hand_back(plan, pair, held, clock=clock)
    return held


def _links(pair: PairPlan) -> frozenset[str]:
    return frozenset(str(flow.link) for flow in streamed_flows(pair))


def _key(backfill: BackfillRecord) -> TopicPartition:
    return backfill.topic, backfill.partition
