"""Starting lane processes. Imports nothing slow, so that they start with the worker, not after it.

A lane process imports for half a second, and a worker for a whole one. Started first, they import side
by side, except on one core that the worker needs; the last process starts with the first lane for it.
"""

import os
import signal
import socket
import subprocess
import sys
from dataclasses import dataclass

LANE_ENTRY = "replicator.wiring.lane_main"
"""What a lane process runs; its argument is the number of an inherited socket."""

_HEAP = {"MALLOC_ARENA_MAX": "2", "MALLOC_MMAP_THRESHOLD_": str(256 * 1024)}
"""glibc gives each thread of the client library a heap of its own, of which each keeps the most that it ever held: memory grew
in steps for as long as one looked. Two are enough, and what is large goes back at once."""


@dataclass(frozen=True, slots=True)
class LaneChild:
    """A lane process and the worker's end of its socket; it ends when that is closed."""

    process: subprocess.Popen[bytes]
    connection: socket.socket


def start_child(entry_module: str = LANE_ENTRY) -> LaneChild:
    """Starts one; from any thread.

    Ctrl-C goes to the whole terminal group, and must not end one that is still importing: it starts
    with these signals blocked.
    """
    ours, theirs = socket.socketpair()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", entry_module, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            env={**_HEAP, **os.environ, "PYTHONUNBUFFERED": "1"},
        )
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    theirs.close()
    return LaneChild(process, ours)


def lane_processes(asked: int) -> int:
    """How many lane processes a worker may have: one per core where 0 is asked for."""
    return asked or os.cpu_count() or 1


def early_processes(wanted: int) -> int:
    """How many of them to start first: one core is the worker's, which has more to import."""
    return min(wanted, max(1, (os.cpu_count() or 1) - 1))
