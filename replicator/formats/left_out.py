"""Records that a partition's lane passed and did not copy, for those who tell copies by counting. Pure.

Where copies carry no marks the n-th copy is that of the n-th record. A record that went to quarantine has
none: unknown, it would make every copy behind it look like that of the record before.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

MOST = 32
"""So many are kept, the newest: checkpoints are written with every commit."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Source offsets without a copy that could be counted.

    Attributes:
        offsets: in order; every one at or above ``known_from``.
        known_from: what was left out below is not known, so nothing below may be counted.
    """

    offsets: tuple[int, ...] = ()
    known_from: int = 0

    def with_offset(self, offset: int) -> "LeftOut":
        """One more record was passed."""
        offsets = tuple(sorted({*self.offsets, offset}))
        dropped = offsets[:-MOST]
        known_from = max([self.known_from, *(each + 1 for each in dropped)])
        return LeftOut(offsets[-MOST:], known_from)

    def behind(self, offset: int) -> "LeftOut":
        """Nothing is known of what stands before an offset."""
        kept = tuple(each for each in self.offsets if each >= offset)
        return LeftOut(kept, max(self.known_from, offset))

    def below(self, position: int) -> "LeftOut":
        """The position went back: what stands behind it is read again."""
        kept = tuple(each for each in self.offsets if each < position)
        return replace(self, offsets=kept, known_from=min(self.known_from, position))

    def stored(self, position: int) -> dict[str, object]:
        """As a checkpoint of that position holds it; empty where there is nothing to say."""
        if not self.offsets and not self.known_from:
            return {}
        return {
            "leftOut": {
                "offsets": list(self.offsets),
                "knownFrom": self.known_from,
                "position": position,
            }
        }


def read_left_out(found: Mapping[str, Any] | None, *, position: int, quarantined: int) -> LeftOut:
    """What a checkpoint says; where an older release stored or handed it on, nothing below its position.

    Raises:
        KeyError, TypeError, ValueError: it is not ours.
    """
    if found is None:
        return LeftOut(known_from=position if quarantined else 0)
    offsets = tuple(int(each) for each in found["offsets"])
    held = LeftOut(offsets, int(found["knownFrom"]))
    return held if found["position"] == position else held.behind(position)
