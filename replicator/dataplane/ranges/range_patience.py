"""How long a range may stand still, and what its task then fails with. Pure.

A lane waits for whatever may pass, because it runs for ever. A range has an end that somebody waits for: a
right or a topic that is missing ends it soon, everything else after minutes, and each with the lane's reason.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from replicator.errors import (
    NotAuthorizedError,
    NotFoundError,
    ReplicatorError,
    UnreachableError,
)

REFUSALS: dict[str, tuple[type[ReplicatorError], str]] = {
    NotAuthorizedError.code: (NotAuthorizedError, "Allow it by an ACL, then run it again."),
    NotFoundError.code: (
        NotFoundError,
        "It may have been deleted: create it again or exclude the topic, then run it again.",
    ),
}
"""What waiting does not mend: errors by the code that a lane gives as its reason, and remedies where it has none."""

_LATELY_SECONDS = 10.0
"""A lane that begins anew has no problem for a moment: what was said so lately still holds."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a range does not move, as its lane says it: a problem code, what is wrong, what to do."""

    code: str
    detail: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a range may stand still for a reason, in seconds.

    ``refused_seconds`` is for rights and topics that are missing.
    """

    seconds: float = 180.0
    refused_seconds: float = 15.0


class RangePatience:
    """Of one range; ``look`` is called several times a second."""

    def __init__(self, subject: str, patience: Patience, *, now: float) -> None:
        """``subject`` names the partition, ``now`` is in monotonic seconds."""
        self._subject = subject
        self._patience = patience
        self._position = -1
        self._worked_at = now
        self._refused_since = now
        self._said: Reason | None = None
        self._said_at = now

    def look(
        self, now: float, position: int, reasons: Sequence[Reason], *, works: bool, otherwise: str
    ) -> None:
        """Takes in how the range stands.

        Args:
            now: monotonic seconds.
            position: how far it was copied; whatever was wrong has passed where that has changed.
            reasons: why it does not move, as far as somebody says so.
            works: whether the lane is at work.
            otherwise: what to say where nobody gives a reason.

        Raises:
            NotAuthorizedError, NotFoundError: a right or a topic was missing for too long.
            UnreachableError: it stood still for too long.
        """
        if position != self._position:
            self._position, self._worked_at, self._said = position, now, None
        if reasons:
            self._hear(now, reasons)
        lately = self._said is not None and now - self._said_at < _LATELY_SECONDS
        if works and not lately:
            self._worked_at, self._said = now, None
            return
        said = self._said
        refused = said is not None and lately and said.code in REFUSALS
        if said and refused and now - self._refused_since > self._patience.refused_seconds:
            kind, remedy = REFUSALS[said.code]
            raise kind(said.detail, subject=self._subject, remedy=said.remedy or remedy)
        if now - self._worked_at > self._patience.seconds:
            raise self._stuck(otherwise)

    def _hear(self, now: float, reasons: Sequence[Reason]) -> None:
        refusals = [reason for reason in reasons if reason.code in REFUSALS]
        if self._said is None or self._said.code not in REFUSALS:
            self._refused_since = now
        self._said, self._said_at = (refusals or reasons)[0], now

    def _stuck(self, otherwise: str) -> ReplicatorError:
        said = self._said or Reason("", otherwise, "")
        return UnreachableError(
            f"nothing could be copied for too long; {said.detail}",
            subject=self._subject,
            remedy=said.remedy
            or "Check that its brokers run, then run it again: it goes on where it was.",
        )
