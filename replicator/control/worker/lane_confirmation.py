"""Lanes that were replaced though this worker owns them, until the group says whose they are."""

from typing import Protocol

import structlog

from replicator.clock import Clock
from replicator.control.worker.owned_lanes import OwnedLanes
from replicator.control.worker.pair_problems import PairProblems
from replicator.errors import NotMovingError, ReplicatorError
from replicator.identifiers import FlowId

log = structlog.get_logger("worker")

TOLD_SECONDS = 5.0
"""A group that rebalances says within less whose a lane is."""


class Group(Protocol):
    """The worker group, as ``Membership`` has it."""

    def confirmed(self, lanes: frozenset[int]) -> frozenset[int]:
        """Those lanes that are surely ours.

        Raises:
            ReplicatorError: the group does not say it.
        """
        ...


class LaneConfirmation:
    """Asks the group as long as there are such lanes, and says which stand still for it; for the pair's thread."""

    def __init__(
        self, flow: FlowId, lanes: OwnedLanes, problems: PairProblems, *, clock: Clock
    ) -> None:
        self._flow = flow
        self._lanes = lanes
        self._problems = problems
        self._clock = clock
        self._since: dict[int, float] = {}
        self._logged = ""

    def still_unconfirmed(self, group: Group | None) -> frozenset[int]:
        """The owned lanes that must not be started yet. Blocking while the group is asked."""
        unconfirmed = self._lanes.unconfirmed
        why: ReplicatorError | None = None
        if unconfirmed and group is not None:
            try:
                sure = group.confirmed(unconfirmed)
            except ReplicatorError as error:
                why = error
            else:
                self._lanes.confirm(sure)
                unconfirmed -= sure
        now = self._clock.monotonic()
        self._since = {lane: self._since.get(lane, now) for lane in unconfirmed}
        waiting = sorted(lane for lane, at in self._since.items() if now - at >= TOLD_SECONDS)
        if waiting:
            self._tell(waiting, why)
        else:
            self._problems.note_confirmed()
            self._logged = ""
        return unconfirmed

    def _tell(self, lanes: list[int], why: ReplicatorError | None) -> None:
        told = self._problems.note_unconfirmed(
            lanes,
            why
            or NotMovingError(
                "it does not count this worker among its members now",
                remedy="It is asked again by itself. If that lasts, restart this worker.",
            ),
        )
        if told != self._logged:
            self._logged = told
            log.warning("lanes wait for the worker group", flow=self._flow, error=told)
