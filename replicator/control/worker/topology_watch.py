"""Notices an edited topology file, also when Kubernetes swaps the symlink behind it.

Content is compared, not times: kubelet replaces a directory link, editors write a new file, and
neither keeps an inode or always moves the time forward.
"""

import hashlib
import threading
from collections.abc import Callable
from pathlib import Path

POLL_SECONDS = 1.0


class TopologyWatch(threading.Thread):
    """Calls ``on_change`` in its own thread each time the file's content is another."""

    def __init__(self, path: Path, *, on_change: Callable[[], None]) -> None:
        super().__init__(name="topology-watch", daemon=True)
        self._path = path
        self._on_change = on_change
        self._stopping = threading.Event()
        self._digest = self._read()

    def run(self) -> None:
        """Looks once a second until stopped; a file that is missing for a moment changes nothing."""
        while not self._stopping.wait(POLL_SECONDS):
            digest = self._read()
            if digest is not None and digest != self._digest:
                self._digest = digest
                self._on_change()

    def stop(self) -> None:
        """Ends the thread soon."""
        self._stopping.set()

    def _read(self) -> str | None:
        try:
            return hashlib.sha256(self._path.read_bytes()).hexdigest()
        except OSError:
            return None
