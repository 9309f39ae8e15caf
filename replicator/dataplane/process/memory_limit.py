"""How much memory the host lets this process and its children have."""

from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")
_UNLIMITED = 1 << 50
"""A limit of version 1 that is not set is close to what 63 bits hold."""


def memory_limit(root: Path = _ROOT, own: Path = Path("/proc/self/cgroup")) -> int | None:
    """The smallest limit, in bytes, of the control groups that we are in; None without one.

    A container sees its own group as the root; outside of one, the groups above count as well.
    """
    places = [root / "memory" / "memory.limit_in_bytes", root / "memory.max"]
    try:
        lines = own.read_text().splitlines()
    except OSError:
        lines = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        base = root / "memory" if controllers else root
        file = "memory.limit_in_bytes" if controllers else "memory.max"
        group = base / path.lstrip("/")
        while group != base and group.is_relative_to(base):
            places.append(group / file)
            group = group.parent
    limits = [limit for place in places if (limit := _limit(place)) is not None]
    return min(limits, default=None)


def _limit(place: Path) -> int | None:
    try:
        text = place.read_text().strip()
    except OSError:
        return None
    return int(text) if text.isdigit() and int(text) < _UNLIMITED else None
