"""The records engine: one consumed record in, one produced record out, with its provenance.

This is the hot path. Per record it costs a handful of C calls on the message, one string for the
hop and one ``produce``; everything that is not needed for a plain record (existing hops, filters,
transforms, refusals) is a branch that a plain record does not take. Bookkeeping is done per run of
records of one partition, not per record. Figures: docs/benchmarks.md.

What cannot be carried unchanged is never changed in silence: it is handed to ``refuse`` with the
reason. Known traps of the client library that are refused here: a create time of 0 (would become
now) and header names that are not UTF-8 (cannot be read).
"""

from collections.abc import Callable, Iterator, Sequence

from replicator.dataplane.copy.engine_protocol import Refusal
from replicator.dataplane.copy.rewrite import Rewriter, Rewritten
from replicator.dataplane.copy.source_message import (
    UNREADABLE,
    Headers,
    RecordSink,
    SourceMessage,
    read_headers,
)
from replicator.dataplane.progress.partition_state import PartitionState, RouteTable
from replicator.dataplane.transport.delivery import CopyOutcome, OnDelivery
from replicator.errors import RecordRefusedError
from replicator.identifiers import HOPS_HEADER


class RecordsEngine:
    """Copies batches of one lane.

    ``begin`` is called before the first record of a run is produced (it opens the transaction),
    ``wait_for_room`` when the producer's queue is full; both may raise to leave the batch.
    ``refuse`` says whether the record is in quarantine (go on) or its partition stops before it.
    ``on_event`` gets what is not a record: the end of a partition, or an error about one.
    ``report_for`` gives the first record of a run its delivery report, or None; ``on_first`` is
    called behind that record.
    """

    def __init__(
        self,
        *,
        producer: RecordSink,
        routes: RouteTable,
        dirty: set[PartitionState],
        suspects: set[PartitionState],
        rewriter: Rewriter,
        outcome: CopyOutcome,
        begin: Callable[[], None],
        wait_for_room: Callable[[], None],
        refuse: Callable[[Refusal], bool],
        on_event: Callable[[SourceMessage], None],
        on_run: Callable[[int, int], None],
        report_for: Callable[[PartitionState, int], OnDelivery | None],
        on_first: Callable[[PartitionState], None],
        provenance: str,
        source_alias: str,
    ) -> None:
        self._producer = producer
        self._routes = routes
        self._dirty = dirty
        self._suspects = suspects
        self._rewriter = rewriter
        self._outcome = outcome
        self._begin = begin
        self._wait_for_room = wait_for_room
        self._refuse = refuse
        self._on_event = on_event
        self._on_run = on_run
        self._report_for = report_for
        self._on_first = on_first
        self._full_hops = provenance == "full"
        self._alias = source_alias

    def copy(self, messages: Sequence[SourceMessage]) -> None:
        """Copies the records in order; see the class for what may be raised."""
        iterator = zip(messages, read_headers(messages), strict=True)
        run = _Run()
        while True:
            message, headers = self._copy_plain(iterator, run)
            if message is None:
                break
            self._copy_special(message, headers, run)
        self._close(run)

    def _copy_plain(
        self, iterator: Iterator[tuple[SourceMessage, Headers | None]], run: "_Run"
    ) -> tuple[SourceMessage | None, Headers | None]:
        """Copies until a record needs more than the plain way; returns that record, not copied."""
        if self._rewriter.active:
            return next(iterator, (None, None))  # filters and transforms look at every record
        produce = self._producer.produce
        full_hops = self._full_hops
        # One dictionary for all records: the client copies headers before it returns.
        header: dict[str, str | bytes | None] = {HOPS_HEADER: run.prefix}
        name = HOPS_HEADER
        topic = run.topic
        partition = run.partition
        target = run.target
        prefix = run.prefix
        last = run.last
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
                offset = message.offset()
                if full_hops:
                    header[name] = f"{prefix}{offset}"
                value = message.value()
                produce(target, value, message.key(), partition, None, None, timestamp, header)
                last = offset
                count += 1
                if value is not None:
                    size += len(value)
        except BufferError:
            return message, headers  # the other way waits for room
        finally:
            run.last = last
            run.count = count
            run.size = size
            run.timestamp = timestamp
        return None, None

    def _copy_special(self, message: SourceMessage, headers: Headers | None, run: "_Run") -> None:
        """Everything a plain record does not need; also opens the next run."""
        if message.error() is not None:
            self._close(run)  # the event may move the very route that this run belongs to
            self._on_event(message)
            return
        if message.partition() != run.partition or message.topic() != run.topic:
            self._close(run)
            if not self._open(run, message):
                return
        offset = message.offset()
        if offset <= run.last:
            return  # fetched before a seek or a pause took effect: already accounted for
        route = run.route
        if route is None or route.problem or route.suspect:
            return
        record = self._rewritten(message, headers, run, route)
        if isinstance(record, Refusal):
            self._give_up_on(record, run)
            return
        if record is None:
            route.dropped += 1
        else:
            self._produce(record, message, run)
        run.last = offset

    def _rewritten(
        self, message: SourceMessage, headers: Headers | None, run: "_Run", route: PartitionState
    ) -> Rewritten | Refusal | None:
        """The record as it goes to the target; None when dropped, a Refusal when it cannot go."""
        if headers is UNREADABLE:
            return Refusal(route, message, "HEADER_NAME", "a header name is not valid UTF-8")
        if message.timestamp()[1] == 0:
            return Refusal(route, message, "TIMESTAMP_ZERO", "create time 0 would become now")
        hop = f"{run.prefix}{message.offset()}" if self._full_hops else run.prefix
        try:
            return self._rewriter.rewrite(message, headers or [], hop, self._outcome)
        except RecordRefusedError as error:
            return Refusal(route, message, "TRANSFORM", error.message)

    def _produce(self, record: Rewritten, message: SourceMessage, run: "_Run") -> None:
        """Produces, waiting for room in the queue as long as it takes."""
        report = None
        first = run.route if run.count == 0 else None
        if first is not None:
            report = self._report_for(first, message.offset())
        while True:
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
                self._wait_for_room()
            else:
                break
        if first is not None:
            self._on_first(first)
        run.count += 1
        if record.value is not None:
            run.size += len(record.value)

    def _give_up_on(self, refusal: Refusal, run: "_Run") -> None:
        """Goes past the record when it is in quarantine; else its partition ends before it."""
        if self._refuse(refusal):
            run.last = refusal.message.offset()
        self._close(run)  # the next record is the first of a run again, with its report

    def _open(self, run: "_Run", message: SourceMessage) -> bool:
        topic = message.topic()
        partition = message.partition()
        by_partition = self._routes.get(topic)
        route = None if by_partition is None else by_partition.get(partition)
        if route is None or route.problem or route.suspect:
            return False  # given up or paused after it was fetched
        epoch = message.leader_epoch()
        if epoch is not None and epoch >= 0:
            if epoch < route.leader_epoch:
                # Leader epochs never go back within one life of a topic.
                route.suspect = True
                self._suspects.add(route)
                return False
            route.leader_epoch = epoch
        self._begin()
        run.route = route
        run.topic = topic
        run.partition = partition
        run.target = route.target_topic
        run.prefix = route.hop_prefix
        run.last = route.position - 1
        run.first_timestamp = run.timestamp = message.timestamp()[1]
        run.count = 0
        run.size = 0
        return True

    def _close(self, run: "_Run") -> None:
        """Writes the run back into its route."""
        route = run.route
        if route is None:
            return
        position = run.last + 1
        if position > route.position:
            self._outcome.read += position - route.position
            route.position = position
            route.timestamp_ms = run.timestamp
            if run.count and route.counted:
                route.records += run.count
                route.bytes += run.size
                self._outcome.copied += run.count
                self._outcome.bytes += run.size
                self._on_run(run.first_timestamp, run.count)
            self._dirty.add(route)
        run.reset()


class _Run:
    """Consecutive records of one partition within one batch."""

    __slots__ = (
        "count", "first_timestamp", "last", "partition", "prefix", "route", "size", "target",
        "timestamp", "topic",
    )  # fmt: skip

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.route: PartitionState | None = None
        self.topic = ""
        self.partition = -1
        self.target = ""
        self.prefix = ""
        self.last = -1
        self.count = 0
        self.size = 0
        self.first_timestamp = -1
        self.timestamp = -1
