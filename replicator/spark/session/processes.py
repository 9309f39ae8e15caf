"""The processes that a Spark session starts: found, and ended whatever state they are in.

A JVM ends by itself when its driver does, but only once it has started, and not while a task's Python
worker is busy. So the end of a session ends the JVM and everything below it.
"""

import contextlib
import os
import signal
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from replicator.programs import run_program

_LOOK_SECONDS = 0.05
_PROC = Path("/proc")
_ASK_SECONDS = 5.0


def child_processes() -> frozenset[int]:
    """The processes that this one has started and that still run."""
    return frozenset(_children()[os.getpid()])


def end_processes(roots: Iterable[int], *, grace_seconds: float) -> None:
    """Ends processes and all below them: SIGTERM first, SIGKILL for what is left after the grace."""
    tree = _with_descendants(set(roots))
    _signal(tree, signal.SIGTERM)
    deadline = time.monotonic() + grace_seconds
    while tree and time.monotonic() < deadline:
        time.sleep(_LOOK_SECONDS)  # grandchildren are not ours to wait for: look again
        tree = _with_descendants(tree)
    _signal(tree, signal.SIGKILL)


def _with_descendants(found: set[int]) -> set[int]:
    """Those of the processes that still run, and all that they have started."""
    children = _children()
    running = {pid for pids in children.values() for pid in pids}
    tree: set[int] = set()
    left = [pid for pid in found if pid in running]
    while left:
        pid = left.pop()
        tree.add(pid)
        left += [child for child in children[pid] if child not in tree]
    return tree


def _children() -> "defaultdict[int, list[int]]":
    """Running processes of this machine by their parent; those that only wait to be reaped left out."""
    found: defaultdict[int, list[int]] = defaultdict(list)
    for pid, parent, state in _from_proc() if _PROC.is_dir() else _from_ps():
        if not state.startswith("Z"):
            found[parent].append(pid)
    return found


def _from_proc() -> Iterator[tuple[int, int, str]]:
    for folder in _PROC.iterdir():
        if folder.name.isdecimal():
            with contextlib.suppress(OSError):  # it has ended meanwhile
                state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
                yield int(folder.name), int(parent), state


def _from_ps() -> Iterator[tuple[int, int, str]]:
    answer = run_program(["ps", "-A", "-o", "pid=,ppid=,stat="], timeout_seconds=_ASK_SECONDS)
    for line in answer.output.splitlines():
        pid, parent, state = line.split()[:3]
        yield int(pid), int(parent), state


def _signal(pids: Iterable[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)
