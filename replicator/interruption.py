"""Ctrl-C at any instant of a command, also while one of its clients is freed."""

import contextlib
from collections.abc import Iterator


@contextlib.contextmanager
def ctrl_c_as_itself() -> Iterator[None]:
    """Raises KeyboardInterrupt where the block was ended by it in other clothes.

    A client of Kafka that is freed looks for signals, and may not raise what it finds. Python then calls it an
    internal error of whatever C function runs next, with the interruption as the cause.
    """
    try:
        yield
    except SystemError as error:
        cause = error.__cause__
        while isinstance(cause, SystemError):
            cause = cause.__cause__
        if isinstance(cause, KeyboardInterrupt):
            raise KeyboardInterrupt from error
        raise
