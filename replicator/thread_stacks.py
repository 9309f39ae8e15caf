"""Where the threads of a process are at this moment, for who looks at one that stands still."""

import faulthandler
import signal
import sys
from collections.abc import Callable


def show_stacks_on_signal(then: Callable[[], None] | None = None) -> None:
    """From now on ``kill -USR1`` has this process write the stack of each thread to standard error, and go on.

    Names of files, lines and functions; no values, so no secrets. It works also where the interpreter is held.

    Args:
        then: called afterwards by the main thread, unless that stands still.
    """
    faulthandler.unregister(signal.SIGUSR1)  # or what is chained now would take its place
    if then is not None:
        signal.signal(signal.SIGUSR1, lambda *_: then())
    faulthandler.register(signal.SIGUSR1, file=sys.__stderr__ or sys.stderr, chain=then is not None)
