"""The TCP connections that the client library holds in this process, made to suit long lines.

librdkafka lets a program look at each socket it opens (``connect_cb``, ``socket_cb``); confluent-kafka cannot set
these. The process can: it owns the descriptors. They are duplicated to be looked at, so that what the library closes
meanwhile is never touched.
"""

import contextlib
import os
import socket
import stat

from replicator.wire.probes.line import line_facts, suit_to_line

_OPEN = "/proc/self/fd"
LOOK_SECONDS = 1.0
"""How often: a look at a hundred descriptors takes 0.2 ms (measured)."""


class LibraryConnections:
    """For one thread. Others of the process are looked at as well: those over short lines stay as they are."""

    def __init__(self, *, far: bool) -> None:
        """``far``: whether some may lead far away; otherwise nothing is looked at."""
        self._far = far
        self._suited: set[int] = set()
        self._look_at = 0.0

    def suit(self, now: float) -> None:
        """Has what is sent over a long line go by BBR, if that is offered; ``now`` is monotonic seconds.

        Each connection is changed once, as soon as the kernel has timed it. Does nothing where none can be seen (only on
        Linux).
        """
        if not self._far or now < self._look_at:
            return
        self._look_at = now + LOOK_SECONDS
        done: set[int] = set()
        with contextlib.suppress(OSError), os.scandir(_OPEN) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):  # closed meanwhile
                    done.update(self._suited_socket(int(entry.name)))
        # A new socket may get the number of one that was closed: only those that are open are remembered.
        self._suited = done

    def _suited_socket(self, descriptor: int) -> tuple[int, ...]:
        """The number of the socket behind it, if it is one for which nothing is left to do."""
        found = os.fstat(descriptor)
        if not stat.S_ISSOCK(found.st_mode):
            return ()
        if found.st_ino in self._suited:
            return (found.st_ino,)
        with socket.socket(fileno=os.dup(descriptor)) as ours:
            facts = line_facts(ours)
            if facts is None or not facts.round_trip_seconds:
                return ()  # no TCP, or one that is still being opened
            suit_to_line(ours)
            return (os.fstat(ours.fileno()).st_ino,)
