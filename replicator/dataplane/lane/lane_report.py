"""What a lane says: its statistics, its state with the reason for it, and lines for the log."""

from collections.abc import Callable

from replicator.dataplane.health.connection_problems import ConnectionProblems
from replicator.dataplane.progress.lane_counters import LaneCounters
from replicator.dataplane.progress.partition_state import PartitionState
from replicator.dataplane.transport.messages import LogLine
from replicator.dataplane.transport.spec import LaneSpec
from replicator.formats.lane_stats import LaneState, LaneStats
from replicator.logins.cluster_login import ClusterLogin
from replicator.policy.capacity.line_settings import NEAR_SECONDS, OFFER_BBR
from replicator.policy.capacity.memory_shares import LaneMemory, shown_bytes
from replicator.problem import Problem


class LaneReport:
    """For the lane's thread; ``stats`` may be read by any, and are new whenever something changed.

    Attributes:
        stats: what was published last.
        state, reason, records_reason: published with the next statistics.
    """

    def __init__(
        self,
        spec: Callable[[], LaneSpec],
        *,
        counters: LaneCounters,
        problems: ConnectionProblems,
        quotas: Callable[[], tuple[Problem | None, Problem | None]],
        logins: tuple[ClusterLogin, ClusterLogin],
        states: Callable[[], list[PartitionState]],
        post: Callable[[LogLine], None],
        on_stats: Callable[[], None],
    ) -> None:
        """``spec`` and ``states`` give what holds now; ``on_stats`` is called when ``stats`` are new.

        ``logins`` are those of this process at the source and at the target: the worker's may hold where
        one of these does not. ``quotas``: see ``LaneContext.held_back``.
        """
        self._spec = spec
        self._counters = counters
        self._problems = problems
        self._quotas = quotas
        self._logins = logins
        self._states = states
        self._post = post
        self._on_stats = on_stats
        self.state: LaneState = "starting"
        self.reason = "taking over"
        self.records_reason = ""
        self._told_memory: LaneMemory | None = None
        self._told_line = False
        self.stats = self._collected()

    def set(self, state: LaneState, reason: str) -> None:
        """What the lane does from now on."""
        self.state, self.reason = state, reason

    def copies(self, records_reason: str) -> None:
        """A session copies from now on: record by record for this reason, though whole batches are asked for, or as asked.

        The log has the end of it; why it began is told where that is found out.
        """
        if self.records_reason and not records_reason:
            self.log("info", "the lane copies whole batches")
        self.records_reason = records_reason

    def end(self, state: LaneState, reason: str) -> None:
        """The last statistics; they travel with the lane's end."""
        self.set(state, reason)
        self.stats = self._collected()

    def publish(self) -> None:
        """Statistics as they are now, changed or not."""
        self.stats = self._collected()
        self._on_stats()

    def publish_changes(self) -> None:
        """The same where anything changed: the same object is not sent again."""
        stats = self._collected()
        if stats != self.stats:
            self.stats = stats
            self._on_stats()

    def log(self, level: str, event: str, **fields: str) -> None:
        """One line, with the lane's place in it."""
        spec = self._spec()
        place = {"flow": spec.pair, "link": spec.link, "lane": str(spec.lane)}
        self._post(LogLine(level, event, {**place, **fields}))

    def memory(self, memory: LaneMemory | None) -> None:
        """Logs what the lane may hold, where that is bounded and not what was logged last."""
        if memory is None or not memory.held_bytes or memory == self._told_memory:
            return
        self._told_memory = memory
        fields = {
            "share": shown_bytes(self._spec().memory.size_bytes),
            "holds_at_most": shown_bytes(memory.held_bytes),
            "answer_of_a_broker": shown_bytes(memory.answer_bytes),
            "records_per_stored_byte": str(memory.expansion),
        }
        if memory.kept:
            self.log("info", "memory of the lane", **fields)
        else:
            self.log("warning", "the lane cannot keep to its part of the worker's memory",
                     remedy="Give the worker more memory (--memory), or fewer lanes.",
                     **fields)  # fmt: skip

    def long_line(self, target_seconds: float, *, bbr: bool) -> None:
        """Warns once where loss will slow what is written over a long line, and nothing here can help that."""
        if bbr or self._told_line or target_seconds <= NEAR_SECONDS:
            return
        self._told_line = True
        self.log("warning", "the target is far away, and loss on the line slows what is written: this host offers no BBR",
                 round_trip=f"{target_seconds * 1000:.0f} ms",
                 remedy=f"Have the host offer it ({OFFER_BBR}); 'replicator check --wan' measures loss.")  # fmt: skip

    def _collected(self) -> LaneStats:
        spec, states = self._spec(), self._states()
        source, target = self._quotas()
        return self._counters.stats(
            pair=spec.pair,
            link=spec.link,
            lane=spec.lane,
            state=self.state,
            reason=self.reason,
            partitions=tuple(state.stats() for state in states),
            source_problem=self._problems.source,
            target_problem=self._problems.target,
            progress_problem=self._problems.progress,
            logins=(_text(self._logins[0].problem()), _text(self._logins[1].problem())),
            quotas=(_text(source), _text(target)),
            opening=self._problems.opening,
            records_reason=self.records_reason if spec.settings.engine == "batches" else "",
            checkpoint_at_ms=max((state.committed_at_ms for state in states), default=0),
        )


def _text(problem: Problem | None) -> str:
    return "" if problem is None else f"{problem.code} {problem.detail}\n{problem.remedy}"
