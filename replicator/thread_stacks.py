"""Where the threads of a process are at this moment, for who looks at one that stands still."""

import os
import signal
import sys
import traceback
from collections.abc import Callable


def show_stacks_on_signal(then: Callable[[], None] = lambda: None) -> None:
    """From now on ``kill -USR1`` has this process write the stack of each thread to standard error, and go on.

    Names of files, lines and functions; no values, so no secrets. By the main thread, between two steps of it:
    faulthandler, which writes at once, ended a busy process (3.11) when it met a frame that was being made.

    Args:
        then: called afterwards.
    """

    def show(*_: object) -> None:
        stacks = []
        for thread, frame in sys._current_frames().items():  # noqa: SLF001  the documented way
            frames = reversed(traceback.extract_stack(frame, limit=50))
            lines = [
                f'  File "{each.filename}", line {each.lineno} in {each.name}' for each in frames
            ]
            stack = "\n".join(lines)
            stacks.append(f"Thread {thread:#x} (most recent call first):\n{stack}\n\n")
        os.write(
            2, "".join(stacks).encode()
        )  # sys.stderr may be in the middle of a write of this thread
        then()

    signal.signal(signal.SIGUSR1, show)
