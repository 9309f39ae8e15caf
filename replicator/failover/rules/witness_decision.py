"""Whether the active cluster is really down, by our own probes and a witness, over time. Pure.

Two sites can never know which of them is down. So both this worker and a witness must find that the
active cluster does not answer, in every probe over the whole of ``after``; one probe that finds
otherwise, or that fails, starts the time again. So these promote nothing: a primary that flaps or is
slow but answers now and then, a network that is cut in one direction only (the witness still sees the
primary), and a witness that is cut off together with this worker (it says nothing).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from replicator.policy.procedure import Automatic

LEAST_LOOKS = 3
"""Fewer probes prove nothing, however long they took."""


def patience_seconds(automatic: Automatic) -> float:
    """How long one probe waits for an answer: a slow primary is not down.

    A quarter of ``after``, so that enough probes fit into it when nothing answers.
    """
    return max(1.0, automatic.interval_seconds, automatic.after_seconds / 4)


@dataclass(frozen=True, slots=True)
class WitnessLook:
    """One probe: what we and the witness found; None where nothing was found out."""

    at_seconds: float
    reached_by_us: bool | None
    reached_by_witness: bool | None

    @property
    def gone(self) -> bool:
        """Whether both say that the active cluster does not answer."""
        return self.reached_by_us is False and self.reached_by_witness is False


@dataclass(frozen=True, slots=True)
class WitnessDecision:
    """Whether to promote, and why or why not in one line."""

    promote: bool
    reason: str


def judge(
    looks: Sequence[WitnessLook], automatic: Automatic, *, now_seconds: float
) -> WitnessDecision:
    """Judges the probes so far, oldest first.

    A gap of more than three intervals and half of ``after`` starts the time again: the worker slept.
    Probes that are slow because nothing answers leave smaller ones.
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
        return WitnessDecision(False, _why_not(looks[-1]) if looks else "nothing was probed yet")
    if now_seconds - stretch[-1].at_seconds > gap_seconds:
        return WitnessDecision(False, "nothing was probed lately")
    lasted = stretch[-1].at_seconds - stretch[0].at_seconds
    if lasted < automatic.after_seconds or len(stretch) < LEAST_LOOKS:
        return WitnessDecision(False, f"down for {lasted:.0f} of {automatic.after_seconds:.0f} s")
    return WitnessDecision(
        True, f"down for {lasted:.0f} s, by {len(stretch)} probes of ours and the witness's"
    )


def keep(looks: Sequence[WitnessLook], automatic: Automatic) -> tuple[WitnessLook, ...]:
    """The probes that can still matter."""
    if not looks:
        return ()
    oldest = looks[-1].at_seconds - 2 * automatic.after_seconds
    return tuple(look for look in looks if look.at_seconds >= oldest)


def _why_not(look: WitnessLook) -> str:
    if look.reached_by_us:
        return "it answers us"
    if look.reached_by_witness:
        return "the witness reaches it: only our own connection is cut"
    if look.reached_by_witness is None:
        return "the witness says nothing"
    return "our own probe found nothing out"
