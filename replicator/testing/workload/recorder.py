"""Keeps a history while it happens: in memory, and line by line in a file where one is given."""

import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Self

from replicator.testing.checker.history import Event, Flow, encode, header_line


class Recorder:
    """Takes events from any thread; one per run.

    Args:
        path: file to write to as well, so that a run that dies leaves what it knew; overwritten.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._lock = threading.Lock()
        self._events: list[Event] = []
        self._file = path.open("wb") if path is not None else None
        if self._file is not None:
            self._file.write(header_line())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def record(self, *events: Event) -> None:
        """Appends events, together and in order."""
        with self._lock:
            self._events.extend(events)
            if self._file is not None:
                self._file.writelines(map(encode, events))

    def expect(self, flows: Iterable[str], *, relay: bool = False) -> None:
        """Says which flows (``east->west``) should have copied; without any, nothing is missed."""
        for flow in flows:
            source, _, target = flow.partition("->")
            self.record(Flow(source.strip(), target.strip(), relay=relay))

    def events(self) -> list[Event]:
        """Everything so far."""
        with self._lock:
            return list(self._events)

    def close(self) -> None:
        """Completes the file; events are still there to be judged."""
        with self._lock:
            if self._file is not None:
                self._file.close()
                self._file = None
