"""Free loopback ports that stay free while a broker is down."""

import atexit
import contextlib
import fcntl
import random
import socket
import threading
from pathlib import Path
from typing import IO

from replicator.testing.kit.cache import cache_root

_LOWEST = 10_240
_EPHEMERAL_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_DEFAULT_EPHEMERAL_START = 32_768


def free_ports(count: int) -> list[int]:
    """Picks ports that no server listens on, below the range the kernel takes for outgoing connections.

    A port from that range could be taken by any client's outgoing connection while a killed broker
    is away, so that the broker could not come back; worse, a client that knocks at the dead port
    may be given the very same port as its own and end up connected to itself.

    A port that was picked belongs to this process until it ends: no other one picks it before a server
    listens there, or while that server is down.
    """
    picked: list[int] = []
    draw = random.SystemRandom()
    while len(picked) < count:
        port = draw.randrange(_LOWEST, max(_LOWEST + 1_000, _ephemeral_start()))
        if is_free(port) and _RESERVED.take(port):
            picked.append(port)
    return picked


class _Reserved:
    """The ports of this process: locked bytes of a file that all processes of the user share."""

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None
        self._ours: set[int] = set()
        self._lock = threading.Lock()

    def take(self, port: int) -> bool:
        """Whether the port was nobody's and is ours now."""
        with self._lock:
            if port in self._ours:
                return False
            try:
                if self._file is None:
                    root = cache_root()
                    root.mkdir(parents=True, exist_ok=True)
                    self._file = (root / "ports.lock").open("ab")
                    atexit.register(self._file.close)
            except OSError:  # nowhere to write: nobody is told, and the port is as free as it looks
                self._ours.add(port)
                return True
            try:
                fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
            except OSError:
                return False
            self._ours.add(port)
            return True


_RESERVED = _Reserved()


def is_free(port: int) -> bool:
    """Whether a server could listen on the port now."""
    with contextlib.closing(socket.socket(socket.AF_INET, socket.SOCK_STREAM)) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def answers(port: int, host: str = "127.0.0.1") -> bool:
    """Whether a server accepts connections on the port."""
    with contextlib.closing(socket.socket(socket.AF_INET, socket.SOCK_STREAM)) as probe:
        probe.settimeout(1.0)
        return probe.connect_ex((host, port)) == 0


def _ephemeral_start() -> int:
    try:
        return int(_EPHEMERAL_RANGE.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return _DEFAULT_EPHEMERAL_START
