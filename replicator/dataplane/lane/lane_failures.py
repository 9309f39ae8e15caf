"""What an error that ended a lane's session means: another owner took over, or the lane recovers."""

from collections.abc import Callable

from replicator.dataplane.lane.lane_report import LaneReport
from replicator.dataplane.session.clients_protocol import SessionClients
from replicator.dataplane.session.lane_context import LaneContext
from replicator.errors import FencedError, ReplicatorError, UnknownOutcomeError
from replicator.kafka.clients.client import KafkaException
from replicator.kafka.clients.errors import map_kafka_error


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
        self._report = report
        self._clients = clients

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
        if isinstance(mapped, UnknownOutcomeError):
            self._counters.unknown_outcomes += 1
        else:
            self._counters.aborts += 1
        self.waiting(mapped, mapped.message)
        self._report.log("warning", "lane recovers from its checkpoints", error=mapped.message)

    def waiting(self, cause: ReplicatorError, reason: str) -> None:
        """The lane does not copy because of ``cause``; ``reason`` is what its state says."""
        self._report.set("recovering", reason)
        self._problems.on_failure(cause)
        self._report.publish()
