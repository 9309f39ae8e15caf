"""Notices that a unit of progress cannot be stored, and finds the target partitions that hold it up."""

from collections.abc import Callable, Iterable

from replicator.clock import Clock
from replicator.dataplane.copy.quarantine_writer import QuarantineWriter
from replicator.dataplane.health.target_check import unwritable_partitions
from replicator.dataplane.progress.lane_counters import LaneCounters
from replicator.dataplane.progress.partition_state import PartitionState
from replicator.errors import (
    AuthenticationFailedError,
    NotFoundError,
    PartitionsRefusedError,
    RecordRefusedError,
    ReplicatorError,
    UnreachableError,
)
from replicator.identifiers import TopicPartition
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.topology.plan import ClusterPlan

PATIENCE_SECONDS = 1.5
"""How long a wait lasts before the target is asked; leaders move in less."""

AGAIN_SECONDS = 3.0
_ASK_SECONDS = 3.0


class StuckWrites:
    """Of one lane, across its sessions; for the lane's thread.

    Attributes:
        give_up_at: monotonic seconds after which the lane does not wait for the target any longer.
        unanswered: why the target gave no answer when it was asked last; None where it did.
    """

    def __init__(
        self,
        *,
        target: ClusterPlan,
        client_id: str,
        checkpoints: TopicPartition,
        quarantine: QuarantineWriter,
        clock: Clock,
        counters: LaneCounters,
        states: Callable[[], Iterable[PartitionState]],
    ) -> None:
        """``checkpoints`` is where the lane's own are written: every unit has some.

        ``quarantine`` says where refused records go, and which partitions have one.
        """
        self._target = target
        self._checkpoints = checkpoints
        self._quarantine = quarantine
        self._client_id = client_id
        self._clock = clock
        self._counters = counters
        self._states = states
        self.give_up_at = float("inf")
        self.unanswered: ReplicatorError | None = None
        self._commits = -1
        self._ask_at = 0.0

    def give_up(self) -> bool:
        """Whether to wait no longer; asked again and again while the target does not take a unit.

        Raises:
            PartitionsRefusedError: some of the unit's partitions take no writes now.
        """
        now = self._clock.monotonic()
        if now > self.give_up_at:
            return True
        if self._commits != self._counters.commits:  # another unit than the last that waited
            self._commits, self._ask_at = self._counters.commits, now + PATIENCE_SECONDS
        elif now >= self._ask_at:
            self._ask_at = now + AGAIN_SECONDS
            refusals = self.refusals_of_unit()
            if refusals:
                raise PartitionsRefusedError(refusals)
        return False

    def on_flow(self) -> None:
        """The target takes what is on its way, however slowly: it is not asked for another while."""
        self._ask_at = max(self._ask_at, self._clock.monotonic() + PATIENCE_SECONDS)

    def explanation(self, error: ReplicatorError) -> PartitionsRefusedError | None:
        """The partitions that made a session fail; None where it was something else, or nobody knows.

        The target is asked about what is not committed, unless the error says itself what it was.
        """
        if isinstance(error, PartitionsRefusedError):
            return error
        refused = self._quarantine.take_refused()
        if refused is not None:
            return refused
        if isinstance(error, UnreachableError | AuthenticationFailedError | RecordRefusedError):
            return None
        refusals = self.refusals_of_unit()
        return PartitionsRefusedError(refusals) if refusals else None

    def refusals_of_unit(self) -> dict[TopicPartition, ReplicatorError]:
        """The target partitions of what is not committed that take no writes, and why.

        Empty as well where the target did not answer: then there is nothing to tell.
        """
        unit = [
            state
            for state in self._states()
            if state.position > state.committed >= 0
            or (state.is_read and self._quarantine.is_needed_by(state))
        ]
        return self.refusals_of(unit) or {}

    def refusals_of(
        self, states: Iterable[PartitionState]
    ) -> dict[TopicPartition, ReplicatorError] | None:
        """Why these partitions cannot be written, by target partition; None without an answer. Blocking.

        One whose next record belongs into quarantine cannot, either, where the quarantine topic takes no writes.
        """
        states = list(states)
        waiting = [state for state in states if self._quarantine.is_needed_by(state)]
        asked = [_place(state) for state in states]
        found = self.refusals([*asked, self._quarantine.place] if waiting else asked)
        if not found:
            return found
        refused = found.pop(self._quarantine.place, None)
        if refused is not None:
            for state in waiting:
                found.setdefault(_place(state), _of_quarantine(state, refused))
        return found

    def ask_quarantine(self, state: PartitionState) -> None:
        """Before a record of this partition is put there, so that no transaction holds what cannot be stored.

        Raises:
            PartitionsRefusedError: the quarantine topic takes no writes now, or the target does not say that it does:
                it may come back without the topic's replicas.
        """
        place = self._quarantine.place
        refusals = self.refusals([place])
        refused = self.unanswered if refusals is None else refusals.get(place)
        # One that does not exist may be created by being written to.
        if refused is not None and not isinstance(refused, NotFoundError):
            raise PartitionsRefusedError({_place(state): _of_quarantine(state, refused)})

    def refusals_of_all(
        self, places: Iterable[TopicPartition]
    ) -> dict[TopicPartition, ReplicatorError]:
        """What takes no writes of all that a transaction of the lane may hold; ``places`` are its copies.

        Empty as well where the target did not answer.
        """
        place = self._quarantine.place
        found = self.refusals([*places, place]) or {}
        if isinstance(found.get(place), NotFoundError):
            return {key: why for key, why in found.items() if key != place}  # it is in none
        return dict(found)

    def refusals(
        self, places: Iterable[TopicPartition]
    ) -> dict[TopicPartition, ReplicatorError] | None:
        """Asks the target which of these target partitions take no writes now, and why. Blocking.

        Those that take writes are absent. Where the lane's checkpoints cannot be written, that is why none of its
        partitions moves, and each of ``places`` has that reason unless it has one of its own. A refused quarantine
        topic is not taken for writable until it is asked again.

        Returns:
            The refusals, empty where nothing was asked; None where the target did not answer, which says nothing
            of any partition.
        """
        asked = list(places)
        if not asked:
            return {}
        try:
            with ClusterAdmin(
                self._target, client_id=self._client_id, timeout_seconds=_ASK_SECONDS
            ) as admin:
                found = unwritable_partitions(admin, [*asked, self._checkpoints])
        except ReplicatorError as error:
            self.unanswered = error
            return None
        self.unanswered = None
        if self._quarantine.place in found:
            self._quarantine.doubt()
        own = found.pop(self._checkpoints, None)
        if own is None or isinstance(
            own, NotFoundError
        ):  # one that is gone is the controller's affair
            return found
        return {**dict.fromkeys(asked, own), **found}


def _place(state: PartitionState) -> TopicPartition:
    return state.target_topic, state.partition


def _of_quarantine(state: PartitionState, refused: ReplicatorError) -> ReplicatorError:
    remedy = refused.remedy
    if isinstance(refused, NotFoundError):
        remedy = "Create it with one partition, or restart a worker, which does."
    return type(refused)(
        f"{state.topic}/{state.partition} has a record for the quarantine topic: {refused.message}",
        subject=refused.subject,
        remedy=remedy,
    )
