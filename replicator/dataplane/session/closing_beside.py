"""Closes a client of the library in a thread of its own: it takes 10 to 40 ms, and seconds where its group has no coordinator.

What a client says while it closes is said in that thread, and nobody's business any more.
"""

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import ParamSpec, Protocol

from replicator.kafka.clients.client import KafkaException

P = ParamSpec("P")

_this_thread = threading.local()


class Closed(Protocol):
    """A client that can be closed."""

    def close(self) -> None:
        """Returns when it is."""
        ...


def close_beside(client: Closed) -> None:
    """Returns at once; the client must not be used any more."""

    def close() -> None:
        _this_thread.closes = True
        with suppress(KafkaException, RuntimeError):  # it is closed as far as it can be
            client.close()

    threading.Thread(target=close, name="client-close", daemon=True).start()


def unless_closing(told: Callable[P, None]) -> Callable[P, None]:
    """The callback, but for what ``close_beside`` has a client say."""

    def heard(*args: P.args, **kwargs: P.kwargs) -> None:
        if not getattr(_this_thread, "closes", False):
            told(*args, **kwargs)

    return heard
