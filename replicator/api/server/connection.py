"""Connections of the HTTP server, bounded in number and in time, so that probes always get through.

A client that sends nothing, sends slowly, or does not read its answer must not keep a place: uvicorn
itself sets a limit only between two requests, and answers 503 to everybody, probes too, once many
connections are open.
"""

import asyncio
from typing import Any, cast

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

MOST_CONNECTIONS = 256
"""Open at once; for one more, the one that has been without a request for longest is closed."""

REQUEST_SECONDS = 10.0
"""For a whole request, from the first byte awaited to the last of its body."""

ANSWER_SECONDS = 20.0
"""For a client to read what is waiting for it."""

MOST_HEAD_BYTES = 32 * 1024
"""Of the request line and all headers."""


class BoundedConnection(H11Protocol):
    """One connection of a client."""

    def __init__(self, *arguments: Any, **named: Any) -> None:  # noqa: ANN401  as uvicorn makes it
        super().__init__(*arguments, **named)
        self.since = self.loop.time()
        self._request: asyncio.TimerHandle | None = None
        self._answer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # uvicorn's own
        """Makes room for it where there is none."""
        super().connection_made(transport)
        self._await_request()
        if len(self.connections) > MOST_CONNECTIONS:
            others = (each for each in self.connections if each is not self)
            idle = [each for each in others if isinstance(each, BoundedConnection) and each.idle]
            if idle:
                min(idle, key=lambda each: each.since).transport.abort()

    @property
    def idle(self) -> bool:
        """Whether no whole request waits for its answer here."""
        # None until the first request, which uvicorn's types leave out.
        cycle = cast("RequestResponseCycle | None", self.cycle)
        return cycle is None or cycle.more_body or cycle.response_complete

    def connection_lost(self, exc: Exception | None) -> None:
        """Forgets its limits."""
        for timer in (self._request, self._answer):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Reads on; the time for a request begins with its first byte."""
        if self._request is None:
            self._await_request()
        super().data_received(data)
        if not self.idle and self._request is not None:
            self._request.cancel()
            self._request = None
            self.since = self.loop.time()

    def pause_writing(self) -> None:
        """The client does not read: it has a while to begin."""
        super().pause_writing()
        self._answer = self.loop.call_later(ANSWER_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """The client reads."""
        super().resume_writing()
        if self._answer is not None:
            self._answer.cancel()
            self._answer = None

    def _await_request(self) -> None:
        self._request = self.loop.call_later(REQUEST_SECONDS, self.transport.abort)
