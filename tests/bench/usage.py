"""CPU and memory of a process and everything below it, from ``/proc`` (Linux).

Processes that end stay in the sum with what they had used when they were last seen. The tree is
looked up once a second, because walking ``/proc`` is itself work that the measured programs feel.
"""

import os
import time
from dataclasses import dataclass
from pathlib import Path

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_LOOK_UP_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Usage:
    """What the tree has used since it was started."""

    cpu_seconds: float
    peak_rss_bytes: int
    processes: int
    rss_bytes: int = 0
    """Resident memory when it was looked up last."""


class ProcessTree:
    """Meters one tree; ask often, it is cheap between two look-ups."""

    def __init__(self, pid: int) -> None:
        self._root = pid
        self._pids: set[int] = {pid}
        self._ticks: dict[int, int] = {}
        self._peak_rss_bytes = self._rss_bytes = 0
        self._look_up_at = 0.0

    def known(self) -> set[int]:
        """The ids of its processes just now."""
        return descendants(self._root)

    def usage(self) -> Usage:
        """CPU until now (all threads, user and system) and the highest sum of resident memory."""
        now = time.monotonic()
        if now >= self._look_up_at:
            self._look_up_at = now + _LOOK_UP_SECONDS
            self._pids = descendants(self._root)
            self._rss_bytes = sum(map(_rss_bytes, self._pids))
            self._peak_rss_bytes = max(self._peak_rss_bytes, self._rss_bytes)
        for pid in self._pids:
            ticks = _cpu_ticks(pid)
            if ticks is not None:
                self._ticks[pid] = ticks
        return Usage(
            cpu_seconds=sum(self._ticks.values()) / _TICKS_PER_SECOND,
            peak_rss_bytes=self._peak_rss_bytes,
            processes=len(self._pids),
            rss_bytes=self._rss_bytes,
        )


def descendants(root: int) -> set[int]:
    """The process and all its children, their children, and so on."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            fields = _stat_fields(int(entry.name))
            if fields is not None:
                children.setdefault(int(fields[1]), []).append(int(entry.name))
    found = {root}
    waiting = [root]
    while waiting:
        for child in children.get(waiting.pop(), ()):
            found.add(child)
            waiting.append(child)
    return found


def _stat_fields(pid: int) -> list[str] | None:
    """Fields of ``stat`` from the third (state) on; the name before them may hold anything."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None  # it ended meanwhile
    return text.rpartition(")")[2].split()


def _cpu_ticks(pid: int) -> int | None:
    fields = _stat_fields(pid)
    return None if fields is None else int(fields[11]) + int(fields[12])


def _rss_bytes(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE_BYTES
    except OSError:
        return 0
