"""What an error that ended a lane's session means: another owner took over, or the lane recovers."""

from collections.abc import Callable

from replicator.dataplane.context.lane_context import LaneContext
from replicator.dataplane.copy.delivery_errors import CODEC_REFUSED
from replicator.dataplane.lane.lane_report import LaneReport
from replicator.dataplane.session.clients_protocol import SessionClients
from replicator.errors import (
    FencedError,
    PartitionsRefusedError,
    RecordRefusedError,
    ReplicatorError,
    UnknownOutcomeError,
)
from replicator.kafka.clients.client import KafkaException
from replicator.kafka.clients.errors import map_kafka_error
from replicator.policy.copies.engines import NEW_ID, NO_CLIENTS


class LaneFailures:
    """For the lane's thread."""

    def __init__(
        self,
        target: str,
        *,
        context: LaneContext,
        report: LaneReport,
        clients: Callable[[], SessionClients | None],
    ) -> None:
        """``target`` is the alias of the cluster written to; ``clients`` gives the session's, where it has some."""
        self._target = target
        self._counters = context.counters
        self._problems = context.problems
        self._crossing = context.crossing
        self._report = report
        self._clients = clients
        self._held = ""
        self._unread = False

    def is_fenced(self, error: ReplicatorError | KafkaException) -> bool:
        """Whether the lane has another owner now."""
        if isinstance(self.mapped(error), FencedError):
            return True
        clients = self._clients()
        return isinstance(error, KafkaException) and clients is not None and clients.replaced(error)

    def mapped(self, error: ReplicatorError | KafkaException) -> ReplicatorError:
        """The client library's errors as ours; only writes to the target raise them."""
        if isinstance(error, ReplicatorError):
            return error
        return map_kafka_error(
            error.args[0], subject=f"cluster:{self._target}", doing="write records"
        )

    def recovering(self, error: ReplicatorError | KafkaException) -> None:
        """Counts and reports that the lane starts again from its checkpoints."""
        mapped = self.mapped(error)
        if isinstance(error, KafkaException) and error.args[0].code() == CODEC_REFUSED:
            self._crossing.refused()
        if isinstance(mapped, UnknownOutcomeError):
            self._counters.unknown_outcomes += 1
        else:
            self._counters.aborts += 1
        self.waiting(mapped, mapped.message)
        self._report.log("warning", "lane recovers from its checkpoints", error=mapped.message)

    def one_by_one(self, error: RecordRefusedError) -> None:
        """Counts and logs that a record in what was just produced is refused: the next session finds out which."""
        self._report.log("warning", "target refused a record, copying the range record by record",
                         error=error.message)  # fmt: skip
        self._counters.aborts += 1

    def none_ahead(self, error: ReplicatorError | KafkaException) -> None:
        """Reports that clients the lane should go over to cannot be opened; logged where that is new."""
        mapped = self.mapped(error)
        if self._report.records_reason == NEW_ID:
            self._report.records_reason = NO_CLIENTS
        if self._problems.not_opened(mapped):
            self._report.log("warning", "new clients cannot be opened, the lane goes on with those it has",
                             error=mapped.message, remedy=mapped.remedy)  # fmt: skip
        self._report.publish_changes()

    def held(self, cause: ReplicatorError) -> None:
        """Reports why the lane cannot begin to copy; what was logged last is not logged again.

        Where it is not known, what the clients reported of the target is the better word, and stays.
        """
        reason, known = cause.message, self._problems.target.partition("\n")[0]
        told = bool(known) and not isinstance(cause, PartitionsRefusedError)
        if told and reason not in known:
            reason = f"{reason}; {known}"
        if cause.message != self._held:
            self._held = cause.message
            self._report.log("warning", "lane waits for its transactional id", error=reason,
                             remedy=cause.remedy)  # fmt: skip
        if isinstance(cause, PartitionsRefusedError):
            self.waiting(next(iter(cause.refusals.values())), reason)
        elif told:
            self._report.set("recovering", reason)
            self._report.publish()
        else:
            self.waiting(cause, reason)

    def unread(self, cause: ReplicatorError) -> None:
        """Reports why the lane's checkpoints cannot be read yet; logged when it begins to wait."""
        if not self._unread:
            self._unread = True
            self._report.log("warning", "lane waits for its checkpoints", error=cause.message,
                             remedy=cause.remedy)  # fmt: skip
        self.waiting(cause, cause.message)

    def begins(self) -> None:
        """The lane has what it waited for."""
        self._held = ""
        self._unread = False
        self._problems.opened()

    def waiting(self, cause: ReplicatorError, reason: str) -> None:
        """The lane does not copy because of ``cause``; ``reason`` is what its state says."""
        self._report.set("recovering", reason)
        self._problems.on_failure(cause)
        self._report.publish()
