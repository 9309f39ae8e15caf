"""An answer that is costly to get, kept for a moment: however many pages ask, it is got once."""

import asyncio
from collections.abc import Callable

from replicator.api.routes.provider import JsonObject
from replicator.clock import Clock


class KeptAnswer:
    """Asks in a thread, at most once per ``seconds``; for one event loop."""

    def __init__(self, ask: Callable[[], JsonObject], *, seconds: float, clock: Clock) -> None:
        self._ask = ask
        self._seconds = seconds
        self._clock = clock
        self._answer: JsonObject = {}
        self._at = float("-inf")
        self._asking = asyncio.Lock()

    async def get(self) -> JsonObject:
        """The kept answer while it is fresh, else a new one; errors are not kept."""
        async with self._asking:
            if self._clock.monotonic() - self._at >= self._seconds:
                self._answer = await asyncio.to_thread(self._ask)
                self._at = self._clock.monotonic()
            return self._answer
