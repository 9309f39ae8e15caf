"""Notices an edited topology file, also when Kubernetes swaps the symlink behind it."""

import threading
from collections.abc import Callable
from pathlib import Path

from replicator.watched_file import WatchedFile

POLL_SECONDS = 1.0


class TopologyWatch(threading.Thread):
    """Calls ``on_change`` in its own thread each time the file's content is another."""

    def __init__(self, path: Path, *, on_change: Callable[[], None]) -> None:
        super().__init__(name="topology-watch", daemon=True)
        self._file = WatchedFile(path)
        self._on_change = on_change
        self._stopping = threading.Event()

    def run(self) -> None:
        """Looks once a second until stopped."""
        while not self._stopping.wait(POLL_SECONDS):
            if self._file.changed():
                self._on_change()

    def stop(self) -> None:
        """Ends the thread soon."""
        self._stopping.set()
