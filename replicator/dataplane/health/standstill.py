"""Partitions that stand still without an error: records wait, none comes, and the client says nothing.

"Moving" means that the position moved, or that the partition is at its end by an answer of the source.
"""

from collections.abc import Collection, Iterable

from replicator.clock import Clock
from replicator.dataplane.health.damaged_source import why_still
from replicator.dataplane.health.drained_backlog import DrainedBacklog
from replicator.dataplane.health.held_to_rate import HeldToRate
from replicator.dataplane.progress.partition_state import PartitionState
from replicator.errors import NotMovingError, ReplicatorError
from replicator.identifiers import TopicPartition
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.topology.plan import ClusterPlan

STILL_SECONDS = 6.0
"""So long a partition with waiting records may stand still before the source is asked about it."""

_ASK_SECONDS = 3.0


class Standstill:
    """Of one lane, across its sessions; for the lane's thread."""

    def __init__(self, *, source: ClusterPlan, client_id: str, clock: Clock) -> None:
        self._source = source
        self._client_id = client_id
        self._clock = clock
        self._seen: dict[TopicPartition, tuple[int, float]] = {}
        self._empty_polls = -1
        self._backlog = DrainedBacklog()
        self._looked_at = 0.0
        self._throttled_seconds = 0.0
        self._at_rate = HeldToRate(still_seconds=STILL_SECONDS)
        self._to_look_at: list[PartitionState] = []

    def found(
        self,
        states: Iterable[PartitionState],
        *,
        empty_polls: int,
        throttled_seconds: float = 0.0,
        held: Collection[TopicPartition] = (),
    ) -> dict[PartitionState, ReplicatorError]:
        """The partitions that stand still though the source has records for them; called now and then.

        A partition that waits behind an open transaction is at the end of what can be read. One that may wait its
        turn in a lane that is held to its rate is found only where the source gives a reason. The arguments are those
        of ``suspects``.

        Raises:
            ReplicatorError: some stand still, and the source does not answer when it is asked about them.
        """
        suspects = self.suspects(
            states, empty_polls=empty_polls, throttled_seconds=throttled_seconds, held=held
        )
        found = self._judged(suspects) if suspects else {}
        looked_at = [state for state in self._to_look_at if state not in found]
        if looked_at:
            found |= {
                state: error
                for state, error in self._judged(looked_at).items()
                if not isinstance(error, NotMovingError)
            }
        return found

    @property
    def waiting(self) -> bool:
        """Whether records wait, so that it is worth to look again soon."""
        return bool(self._seen)

    def suspects(
        self,
        states: Iterable[PartitionState],
        *,
        empty_polls: int,
        throttled_seconds: float = 0.0,
        held: Collection[TopicPartition] = (),
    ) -> list[PartitionState]:
        """Partitions that stood still before known records for so long while the lane had time for them.

        Time in which the lane works off the backlog of other partitions does not count, nor does time for which
        its rate lets it read nothing.

        Args:
            states: of the lane.
            empty_polls: how often the lane has found nothing to read. While that does not grow the lane
                is busy with other partitions, or waits for its target.
            throttled_seconds: how long the lane has waited for its rate, in all.
            held: partitions that made way for others of higher priority since the last look.
        """
        now = self._clock.monotonic()
        states = list(states)
        passed = now - self._looked_at
        throttled = throttled_seconds - self._throttled_seconds
        busy = empty_polls == self._empty_polls
        drained = self._backlog.goes_on(states, at_a_rate=throttled > 0)
        uncounted = passed if drained or busy else min(passed, throttled)
        self._looked_at, self._throttled_seconds = now, throttled_seconds
        before, self._seen = self._seen, {}
        if busy and not throttled:
            before = {}
        self._empty_polls = empty_polls
        suspects, waiting = [], []
        for state in states:
            waits = state.source_end > state.position >= 0
            if not waits or state.problem or state.needs_check or state.health.failure:
                continue
            if state.key in held:
                continue
            waiting.append(state)
            known = before.get(state.key)
            if known is None or known[0] != state.position:
                known = (state.position, now)
            else:
                known = (state.position, min(now, known[1] + uncounted))
                if now - known[1] >= STILL_SECONDS:
                    suspects.append(state)
                    known = (state.position, now)  # asked about again only after as long
            self._seen[state.key] = known
        self._to_look_at = self._at_rate.to_look_at(waiting, throttled=throttled > 0, now=now)
        return suspects

    def _judged(self, suspects: list[PartitionState]) -> dict[PartitionState, ReplicatorError]:
        with ClusterAdmin(
            self._source, client_id=self._client_id, timeout_seconds=_ASK_SECONDS
        ) as admin:
            ends = admin.offsets([state.key for state in suspects], "latest", "read_committed")
        found: dict[PartitionState, ReplicatorError] = {}
        still: dict[PartitionState, int] = {}
        for state in suspects:
            end = ends.get(state.key)
            if isinstance(end, ReplicatorError):
                found[state] = end
            elif end is not None and end > state.position:
                still[state] = end
        return found | why_still(self._source, still, client_id=self._client_id)
