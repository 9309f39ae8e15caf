"""Whose turn it is to open its clients anew, of the lanes of one process."""

import threading


class Turn:
    """One lane at a time gives up clients that work; the next one when that lane copies again.

    So a process never stands still as a whole, and where a lane cannot go on with a new login, the
    others copy with the old one.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holder: object = None

    def take(self, who: object) -> bool:
        """Whether it is its turn now; it has it until it gives it back."""
        with self._lock:
            if self._holder is None:
                self._holder = who
            return self._holder is who

    def give_back(self, who: object) -> None:
        """Nothing where it is not its turn."""
        with self._lock:
            if self._holder is who:
                self._holder = None
