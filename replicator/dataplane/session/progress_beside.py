"""Showing positions in the lane's group on the source, so that ordinary lag tools see every flow.

The coordinator is asked in a short-lived thread, one request at a time: a coordinator that moves, is slow or says
nothing holds up no record. Nothing depends on the answer but what is said of it. Not asked through the client that
reads the records: one that was sent elsewhere three times in a row showed nothing for a minute and a half, without a word.
"""

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from itertools import islice

from replicator.dataplane.context.lane_context import LaneContext
from replicator.dataplane.progress.partition_state import PartitionState
from replicator.dataplane.progress.shown_positions import ShownPositions
from replicator.dataplane.transport.spec import LaneSpec, lane_client_id
from replicator.errors import (
    InputError,
    NotAuthorizedError,
    NotFoundError,
    ReplicatorError,
    UnreachableError,
)
from replicator.identifiers import TopicPartition, progress_group
from replicator.wire.groups.group_positions import GroupPositions

ANSWER_SECONDS = 4.0
"""How long the positions of one interval are tried for: less than the interval, and than it takes the lane's next
owner to show its first ones."""

END_SECONDS = 0.8
"""How long a lane that ends in order waits for its last positions to be shown."""

TOLD_SECONDS = 60.0
"""What passes by itself, as a coordinator that moves, is told once it has lasted for so long."""

POSITIONS_AT_ONCE = 1000
"""The coordinator writes a request as one batch, of about 100 bytes a position; topics take 1 MB by default."""


class ProgressBeside:
    """Of one session; for the lane's thread."""

    def __init__(
        self,
        group: GroupPositions,
        *,
        now: float,
        on_answer: Callable[[ReplicatorError | None], None],
    ) -> None:
        """``on_answer`` gets why the group takes no positions, and None once it took all."""
        self._group = group
        self._on_answer = on_answer
        self._positions = ShownPositions(now)
        self._showing: _Showing | None = None
        self._failing = False
        self._passing_since: float | None = None
        self._now = now

    def show(self, states: Callable[[], Iterable[PartitionState]], now: float) -> None:
        """Has shown what moved since the last time, if that is long enough ago (monotonic seconds).

        Asked after every step, so it is cheap where nothing is due.
        """
        if self._showing is not None:
            if self._showing.over:
                self._now = now
                self._take(self._showing)
        elif self._positions.due(now):
            self._begin(states, ANSWER_SECONDS)

    def show_end(self, states: Callable[[], Iterable[PartitionState]]) -> None:
        """What the lane has stored by now, before it ends; waits for END_SECONDS at most.

        Not where the last positions were not taken either.
        """
        deadline = time.monotonic() + END_SECONDS
        if not self._over_by(deadline) or self._failing:
            return
        self._begin(states, deadline - time.monotonic())
        self._over_by(deadline)

    def close(self) -> None:
        """Hangs up, as soon as nothing is on its way."""
        if self._showing is None:
            self._group.close()
        else:
            self._showing.leave()

    def _begin(self, states: Callable[[], Iterable[PartitionState]], seconds: float) -> None:
        moved = self._positions.moved(states())
        if moved:
            self._showing = _Showing(self._group, moved, seconds)

    def _over_by(self, deadline: float) -> bool:
        """Waits for what is on its way; False where that takes longer."""
        showing = self._showing
        if showing is not None:
            showing.wait(deadline - time.monotonic())
            if not showing.over:
                return False
            self._take(showing)
        return True

    def _take(self, showing: "_Showing") -> None:
        self._showing = None
        self._positions.shown(showing.taken)
        self._failing = bool(showing.failures)
        lasting = next(filter(_lasts, showing.failures), None)
        passing = next((each for each in showing.failures if each.retriable), None)
        if passing is None:
            self._passing_since = None
        elif self._passing_since is None:
            self._passing_since = self._now
        since = self._passing_since
        if lasting is not None or passing is None:
            self._on_answer(lasting)
        elif since is not None and self._now - since >= TOLD_SECONDS:
            self._on_answer(_stood_still(passing))


def progress_beside(spec: LaneSpec, context: LaneContext) -> ProgressBeside:
    """Of a lane, in the group of its link's target; nothing is asked yet."""
    group = progress_group(spec.topology, spec.target.alias)
    return ProgressBeside(
        GroupPositions(
            spec.source,
            group,
            client_id=lane_client_id(spec),
            doing=f"show progress in group {group}",
        ),
        now=context.clock.monotonic(),
        on_answer=context.problems.refuse_progress,
    )


class _Showing:
    """Positions on their way; the thread ends by itself.

    Attributes:
        taken: those that the group has; to be read once it is over.
        failures: why it has not all of them.
    """

    def __init__(
        self, group: GroupPositions, positions: Mapping[TopicPartition, int], seconds: float
    ) -> None:
        self.taken: dict[TopicPartition, int] = {}
        self.failures: list[ReplicatorError] = []
        self._group = group
        self._deadline = time.monotonic() + seconds
        self._ended = self._left = False
        self._lock = threading.Lock()
        self._thread = threading.Thread(
            target=self._run, args=(positions,), name="progress", daemon=True
        )
        self._thread.start()

    @property
    def over(self) -> bool:
        """Whether it has its answer, or has given up."""
        return not self._thread.is_alive()

    def wait(self, seconds: float) -> None:
        """Until it is over, for so many seconds at most."""
        self._thread.join(max(0.0, seconds))

    def leave(self) -> None:
        """Nobody waits for it any more; it hangs up when it is over."""
        with self._lock:
            self._left = True
            if not self._ended:
                return
        self._group.close()

    def _run(self, positions: Mapping[TopicPartition, int]) -> None:
        try:
            self._show(positions)
        except ReplicatorError as error:
            self.failures.append(error)
        except Exception as error:  # noqa: BLE001  no lane may end for what only shows where it is
            self.failures.append(ReplicatorError(f"cannot show progress: unexpected: {error!r}"))
        with self._lock:
            self._ended = True
            if not self._left:
                return
        self._group.close()

    def _show(self, positions: Mapping[TopicPartition, int]) -> None:
        left = iter(positions.items())
        while some := dict(islice(left, POSITIONS_AT_ONCE)):
            seconds = self._deadline - time.monotonic()
            refused = self._group.store(some, timeout_seconds=seconds)
            self.taken.update((place, at) for place, at in some.items() if place not in refused)
            self.failures += refused.values()


def _stood_still(cause: ReplicatorError) -> UnreachableError:
    return UnreachableError(
        f"the group that shows progress has not taken all positions for {TOLD_SECONDS:g} s: {cause.message}",
        subject=cause.subject,
        remedy=cause.remedy
        or "Look at the logs of the group's coordinator, a broker of the cluster.",
    )


def _lasts(failure: ReplicatorError) -> bool:
    """Whether somebody has to do something; the rest passes, or is told elsewhere."""
    if isinstance(failure, NotAuthorizedError):
        return True
    return not (failure.retriable or isinstance(failure, NotFoundError | InputError))
