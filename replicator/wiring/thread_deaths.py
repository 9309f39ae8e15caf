"""Threads that were ended by an error nobody caught: logged, and kept until somebody has replaced them.

One rule for every thread of a process. Without it such a thread is missed only by what it no longer does.
"""

import threading

import structlog

log = structlog.get_logger("worker")


class ThreadDeaths:
    """The deaths in this process; thread-safe."""

    def __init__(self) -> None:
        self._found: dict[str, str] = {}

    def install(self) -> None:
        """From now on threads of this process that end by an error are kept here."""
        threading.excepthook = self.note

    def note(self, ended: threading.ExceptHookArgs) -> None:
        """Takes one in; called in the thread that ends."""
        name = "?" if ended.thread is None else ended.thread.name
        self._found[name] = repr(ended.exc_value)
        log.error("a thread ended by an error", thread=name, error=self._found[name],
                  exc_info=ended.exc_value)  # fmt: skip

    def standing(self) -> tuple[str, ...]:
        """What is missing now, in words: deaths whose place no living thread of the same name took."""
        living = {thread.name for thread in threading.enumerate()}
        return tuple(
            f"thread '{name}' ended by an error: {error}"
            for name, error in sorted(self._found.copy().items())
            if name not in living
        )
