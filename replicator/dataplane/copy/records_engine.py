"""The records engine: one consumed record in, one produced record out, with its provenance.

This is the hot path. Per record it costs a handful of C calls on the message, one string for the
hop and one ``produce``; everything that is not needed for a plain record (existing hops, filters,
transforms, refusals) is a branch that a plain record does not take. Bookkeeping is done per run of
records of one partition, not per record. Figures: docs/benchmarks.md.

What cannot be carried unchanged is never changed in silence: it is yielded as a ``Refusal`` with the
reason. Known traps of the client library that are refused here: a create time of 0 (would become
now) and header names that are not UTF-8 (cannot be read).
"""

from collections.abc import Iterable, Iterator, Sequence

from replicator.dataplane.copy.engine_protocol import (
    CopyStep,
    EpochWentBack,
    LogRewritten,
    QueueFull,
    Refusal,
    Run,
    SourceEvent,
)
from replicator.dataplane.copy.rewrite import Rewriter, Rewritten
from replicator.dataplane.copy.source_message import (
    UNREADABLE,
    Headers,
    RecordSink,
    SourceMessage,
    read_headers,
)
from replicator.dataplane.progress.partition_state import PartitionState, PartitionTable
from replicator.dataplane.progress.run_reports import RunReports
from replicator.dataplane.transport.delivery import CopyOutcome
from replicator.errors import RecordRefusedError
from replicator.identifiers import HOPS_HEADER
from replicator.kafka.clients.client import KafkaException


class RecordsEngine:
    """Copies batches of one lane; what it does for one batch is an iterator of steps."""

    def __init__(
        self,
        *,
        producer: RecordSink,
        table: PartitionTable,
        rewriter: Rewriter,
        outcome: CopyOutcome,
        reports: RunReports,
        provenance: str,
    ) -> None:
        """``outcome`` counts what the rewriter drops; what is copied is counted from the runs."""
        self._producer = producer
        self._table = table
        self._rewriter = rewriter
        self._outcome = outcome
        self._reports = reports
        self._full_hops = provenance == "full"

    def copy(self, messages: Sequence[SourceMessage]) -> Iterator[CopyStep]:
        """Copies the records in order and yields runs, and what the caller has to decide."""
        run = _OpenRun()
        try:
            yield from self._copy_runs(messages, run)
        except KafkaException:
            # What was produced must be known: the record that failed the unit is among it.
            run.close()
            raise

    def _copy_runs(self, messages: Sequence[SourceMessage], run: "_OpenRun") -> Iterator[CopyStep]:
        iterator = zip(messages, read_headers(messages), strict=True)
        while True:
            message, headers = self._copy_plain(iterator, run)
            if message is None:
                break
            if (
                message.error() is not None
                or message.partition() != run.partition
                or message.topic() != run.topic
            ):
                yield from run.close()
                yield from self._open(run, message)
            record = self._rewritten(message, headers, run)
            if isinstance(record, Refusal):
                yield from run.close()  # the next record is the first of a run again
                yield record
            elif record is not None:
                while not self._produced(record, message, run):
                    yield QueueFull((message.topic(), message.partition(), message.offset()))
        yield from run.close()

    def _copy_plain(
        self, iterator: Iterator[tuple[SourceMessage, Headers | None]], run: "_OpenRun"
    ) -> tuple[SourceMessage | None, Headers | None]:
        """Copies until a record needs more than the plain way; returns that record, not copied."""
        # Filters and transforms look at every record; and what stands before the first record that a
        # run produces may have been dropped: that one is watched all the same.
        if self._rewriter.active or not run.count:
            return next(iterator, (None, None))
        produce = self._producer.produce
        full_hops = self._full_hops
        # One dictionary for all records: the client copies headers before it returns.
        header: dict[str, str | bytes | None] = {HOPS_HEADER: run.prefix}
        name = HOPS_HEADER
        topic = run.topic
        partition = run.partition
        target = run.target
        prefix = run.prefix
        done: SourceMessage | None = None
        count = run.count
        size = run.size
        timestamp = run.timestamp
        message = headers = None
        try:
            for message, headers in iterator:
                if (
                    message.error() is not None
                    or message.partition() != partition
                    or message.topic() != topic
                    or headers is not None
                ):
                    return message, headers
                timestamp = message.timestamp()[1]
                if not timestamp:
                    return message, headers
                if full_hops:
                    header[name] = f"{prefix}{message.offset()}"
                value = message.value()
                produce(target, value, message.key(), partition, None, None, timestamp, header)
                done = message
                count += 1
                if value is not None:
                    size += len(value)
        except BufferError:
            return message, headers  # the other way waits for room
        finally:
            if done is not None:
                run.read(done, copied=True)
            run.count = count
            run.size = size
            run.timestamp = timestamp
        return None, None

    def _rewritten(
        self, message: SourceMessage, headers: Headers | None, run: "_OpenRun"
    ) -> Rewritten | Refusal | None:
        """The record as it goes to the target; None where nothing does, a Refusal when it cannot go."""
        state = run.state
        if state is None:
            return None
        if self._rewriter.came_back(message, self._outcome):
            state.dropped += 1
            run.read(message, copied=False)
            return None
        if headers is UNREADABLE:
            return Refusal(state, message, "HEADER_NAME", "a header name is not valid UTF-8")
        if message.timestamp()[1] == 0:
            return Refusal(state, message, "TIMESTAMP_ZERO", "create time 0 would become now")
        hop = f"{run.prefix}{message.offset()}" if self._full_hops else run.prefix
        try:
            record = self._rewriter.rewrite(message, headers or [], hop, self._outcome)
        except RecordRefusedError as error:
            return Refusal(state, message, "TRANSFORM", error.message)
        if record is None:
            state.dropped += 1
            run.read(message, copied=False)
        return record

    def _produced(self, record: Rewritten, message: SourceMessage, run: "_OpenRun") -> bool:
        """Produces the record; False when the producer has no room for it."""
        first = None if run.count else run.state
        report = None if first is None else self._reports.report_for(first, message.offset())
        try:
            self._producer.produce(
                run.target,
                record.value,
                record.key,
                run.partition,
                report,
                None,
                message.timestamp()[1],
                record.headers,
            )
        except BufferError:
            return False
        if first is not None:
            self._reports.wait_after(first)
        run.read(message, copied=True)
        run.count += 1
        if record.value is not None:
            run.size += len(record.value)
        return True

    def _open(self, run: "_OpenRun", message: SourceMessage) -> Iterable[CopyStep]:
        """Opens a run with this record, unless it is none or its partition must not be copied."""
        if message.error() is not None:
            return (SourceEvent(message),)
        by_partition = self._table.get(message.topic())
        state = None if by_partition is None else by_partition.get(message.partition())
        if state is None or state.problem or state.needs_check:
            return ()  # given up or paused after it was fetched
        offset = message.offset()
        if offset < state.position:
            if offset >= state.record_end >= 0:
                return (LogRewritten(state),)
            return ()  # fetched before a seek took effect, accounted for already
        epoch = message.leader_epoch()
        if epoch is not None and epoch >= 0:
            if epoch < state.leader_epoch:
                return (EpochWentBack(state),)  # within one life of a topic epochs never go back
            state.leader_epoch = epoch
        run.open(state, message.timestamp()[1])
        return ()


class _OpenRun:
    """Consecutive records of one partition within one batch, while they are copied."""

    __slots__ = (
        "count", "first_timestamp", "last", "last_copied", "newest", "partition", "prefix", "size",
        "state", "target", "timestamp", "topic",
    )  # fmt: skip

    def __init__(self) -> None:
        self.first_timestamp = self.timestamp = self.last = self.last_copied = -1
        self.count = self.size = 0
        self.newest: SourceMessage | None = None
        self._reset()

    def _reset(self) -> None:
        self.state: PartitionState | None = None
        self.topic = ""
        self.partition = -1
        self.target = ""
        self.prefix = ""

    def open(self, state: PartitionState, timestamp_ms: int) -> None:
        """Begins behind the partition's position."""
        self.state = state
        self.topic = state.topic
        self.partition = state.partition
        self.target = state.target_topic
        self.prefix = state.hop_prefix
        self.last = state.position - 1
        self.first_timestamp = self.timestamp = timestamp_ms
        self.count = 0
        self.size = 0
        self.last_copied = -1

    def read(self, message: SourceMessage, *, copied: bool) -> None:
        """Takes in the last record so far; ``copied``: it was handed to the producer."""
        self.newest = message
        self.last = message.offset()
        if copied:
            self.last_copied = self.last

    def close(self) -> tuple[Run, ...]:
        """Writes the run into its partition's state; empty when nothing was read in it."""
        state = self.state
        if state is None:
            return ()
        self._reset()
        read = self.last + 1 - state.position
        if read <= 0:
            return ()
        state.position += read
        state.timestamp_ms = self.timestamp
        epoch = None if self.newest is None else self.newest.leader_epoch()
        self.newest = None
        produced = (self.count, self.last_copied, -1 if epoch is None else epoch)
        if not state.counted:
            return (Run(state, read, 0, 0, self.first_timestamp, *produced),)
        state.count_copied(self.count, self.size)
        return (Run(state, read, self.count, self.size, self.first_timestamp, *produced),)
