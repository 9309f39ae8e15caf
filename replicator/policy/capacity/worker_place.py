"""Where a worker should stand between two clusters, judged from the lines to both. Pure.

Who sends decides how a TCP connection bears loss. What a worker fetches is sent by the source's brokers, mostly
with the kernel's default; what it writes is sent by itself, with BBR where its host offers that. So a
worker stands near the target where the line between the clusters is clean, and near the source where
it loses packets.
"""

from dataclasses import dataclass
from typing import Literal

from replicator.policy.capacity.line_settings import NEAR_SECONDS, OFFER_BBR

LOSSY = 0.001
"""From this share of lost packets on, one connection of 100 ms carries 1 MB/s or less."""

Advice = Literal["stay", "near-target", "near-source"]


@dataclass(frozen=True, slots=True)
class Line:
    """From the worker to one cluster: round trip in seconds, share of segments that were sent again."""

    round_trip_seconds: float
    loss: float

    @property
    def is_long(self) -> bool:
        """Whether it leaves the site."""
        return self.round_trip_seconds > NEAR_SECONDS


@dataclass(frozen=True, slots=True)
class Place:
    """What to do about a worker of one flow, and why, as a sentence."""

    advice: Advice
    reason: str


def place_of_worker(source: Line, target: Line, *, bbr: bool) -> Place:
    """Judges the place that both lines were measured from; ``bbr``: the host offers it."""
    lossy = max((each.loss for each in (source, target) if each.is_long), default=0.0)
    if not source.is_long and not target.is_long:
        return Place("stay", "both clusters are near: a worker stands well here")
    if lossy < LOSSY:
        if not target.is_long:
            return Place("stay", "the line is clean and the target near: a worker stands well here")
        return Place(
            "near-target",
            "the line is clean: near the target, where no write and no commit waits for a round trip",
        )
    borne = (
        "BBR is offered here and bears the loss"
        if bbr
        else f"have the host there offer BBR ({OFFER_BBR}), or loss slows writes too"
    )
    if source.is_long:
        return Place(
            "near-source",
            f"the line loses {lossy:.2%}: fetches over it are sent by the source's brokers and slow down; "
            f"near the source a worker sends over it itself ({borne})",
        )
    return Place("stay", f"the line loses {lossy:.2%}, and the source is near: {borne}")
