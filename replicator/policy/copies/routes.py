"""Whether arrows lead from one place to another. Pure."""

from collections.abc import Iterable


def leads_to(arrows: Iterable[tuple[str, str]], start: str, goal: str) -> bool:
    """Whether a way along the arrows, ``(from, to)``, ends at the goal; the empty way counts.

    Linear in the number of arrows.
    """
    onward: dict[str, list[str]] = {}
    for here, there in arrows:
        onward.setdefault(here, []).append(there)
    seen = {start}
    ahead = [start]
    while ahead:
        place = ahead.pop()
        if place == goal:
            return True
        fresh = [each for each in onward.get(place, ()) if each not in seen]
        seen.update(fresh)
        ahead.extend(fresh)
    return False
