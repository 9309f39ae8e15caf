"""Ctrl-C and SIGTERM at any instant of a Spark session, also while it starts.

The main thread may be waiting for an answer of the JVM then, and PySpark asks it for more on the way out.
So the JVM is ended first, from another thread, and the wait with it; what the main thread raises because
of that is replaced by the interruption.
"""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType

TERMINATED = 143
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interruption:
    """Whether a signal has come, and what it ends the command with."""

    def __init__(self, end_session: Callable[[], None]) -> None:
        """``end_session`` ends the processes of the session; called once, in a thread of its own."""
        self._end_session = end_session
        self._number: int | None = None

    def arrive(self, number: int, _frame: FrameType | None = None) -> None:
        """The signal handler: the first signal counts.

        Raises:
            KeyboardInterrupt: after Ctrl-C.
            SystemExit: with 143, after SIGTERM.
        """
        if self._number is None:
            self._number = number
            threading.Thread(target=self._end_session, name="spark-end", daemon=True).start()
            self.check()

    def check(self) -> None:
        """Raises what ``arrive`` raises, if a signal has come."""
        if self._number == signal.SIGINT:
            raise KeyboardInterrupt
        if self._number is not None:
            raise SystemExit(TERMINATED)


@contextlib.contextmanager
def interruptible(interruption: Interruption) -> Iterator[None]:
    """Handles both signals in the block, whatever it raises because of them; in the main thread only."""
    with _handled(interruption.arrive):
        try:
            yield
        except BaseException:
            interruption.check()
            raise
        interruption.check()


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """For the seconds in which a session ends: a second Ctrl-C must not leave processes behind."""
    with _handled(signal.SIG_IGN):
        yield


@contextlib.contextmanager
def _handled(handler: Callable[[int, FrameType | None], None] | signal.Handlers) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {each: signal.signal(each, handler) for each in _SIGNALS}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)
