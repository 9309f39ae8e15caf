"""Whether the active side is really gone: our own probes and a witness's word, over time. Pure.

Two sites can never know who is down. So both we and a third place must say that the active side does
not answer, in every look of a whole stretch of time; one look that says otherwise, or that nobody could
take, begins the stretch anew. That covers what must not promote: a primary that flaps or is slow but
answers now and then, a network that is cut in one direction only (the witness still sees it), and a
witness that is cut off with us (it says nothing).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from replicator.policy.procedure import Automatic

LEAST_LOOKS = 3
"""A stretch of fewer looks proves nothing, however long it was."""


def patience_seconds(automatic: Automatic) -> float:
    """How long one probe may take to be answered: a primary that is slow is not gone.

    A quarter of ``after``, so that a stretch without answers still holds enough looks.
    """
    return max(1.0, automatic.interval_seconds, automatic.after_seconds / 4)


@dataclass(frozen=True, slots=True)
class WitnessLook:
    """One look: what our probe and the witness said; None where nothing could be said."""

    at_seconds: float
    reached_by_us: bool | None
    reached_by_witness: bool | None

    @property
    def gone(self) -> bool:
        """Whether both say that the active side does not answer."""
        return self.reached_by_us is False and self.reached_by_witness is False


@dataclass(frozen=True, slots=True)
class WitnessDecision:
    """Whether to promote, and why or why not in one line."""

    promote: bool
    reason: str


def judge(
    looks: Sequence[WitnessLook], automatic: Automatic, *, now_seconds: float
) -> WitnessDecision:
    """Judges the looks taken so far, oldest first.

    Looks must have been taken all the time: a gap of more than three intervals and half of ``after``
    (a worker that slept, not one whose probes are slow because nobody answers) begins it anew.
    """
    gap_seconds = max(3 * automatic.interval_seconds, automatic.after_seconds / 2)
    stretch: list[WitnessLook] = []
    for look in looks:
        if not look.gone:
            stretch = []
            continue
        if stretch and look.at_seconds - stretch[-1].at_seconds > gap_seconds:
            stretch = []
        stretch.append(look)
    if not stretch:
        return WitnessDecision(False, _why_not(looks[-1]) if looks else "nobody has looked yet")
    if now_seconds - stretch[-1].at_seconds > gap_seconds:
        return WitnessDecision(False, "nobody has looked lately")
    lasted = stretch[-1].at_seconds - stretch[0].at_seconds
    if lasted < automatic.after_seconds or len(stretch) < LEAST_LOOKS:
        return WitnessDecision(False, f"gone for {lasted:.0f} of {automatic.after_seconds:.0f} s")
    return WitnessDecision(
        True, f"gone for {lasted:.0f} s by {len(stretch)} looks of ours and the witness's"
    )


def keep(looks: Sequence[WitnessLook], automatic: Automatic) -> tuple[WitnessLook, ...]:
    """The looks that can still matter."""
    if not looks:
        return ()
    oldest = looks[-1].at_seconds - 2 * automatic.after_seconds
    return tuple(look for look in looks if look.at_seconds >= oldest)


def _why_not(look: WitnessLook) -> str:
    if look.reached_by_us:
        return "it answers us"
    if look.reached_by_witness:
        return "the witness reaches it: only our way to it is cut"
    if look.reached_by_witness is None:
        return "the witness says nothing"
    return "our own probe said nothing"
