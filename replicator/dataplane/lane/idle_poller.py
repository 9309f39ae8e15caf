"""Where lanes rest that have had nothing to read for a while: one thread looks after all of them.

A thread that waits in the client for its next record wakes up five times a second all the same: the
library looks for signals in between (confluent-kafka 2.16). A hundred quiet lanes of a process would
wake up five hundred times a second; here it is five times for all of them together.
"""

import threading
import time
from collections.abc import Callable

from replicator.kafka.client import Consumer, Message

LOOK_SECONDS = 0.2
"""How often resting lanes are looked after: the first record after a rest is late by as much."""

Rest = Callable[[Consumer, float], Message | None]
"""Waits for a consumer's next event for so many seconds, as its ``poll`` would."""


class _IdleLane:
    """A lane at rest. ``answer`` is what its consumer had, or why it could not say."""

    def __init__(self, consumer: Consumer, wake: threading.Event) -> None:
        self.consumer = consumer
        self.wake = wake
        self.answer: Message | Exception | None = None


class IdlePoller:
    """For the lanes of one process; its thread is there while somebody rests."""

    def __init__(self) -> None:
        self._guests: set[_IdleLane] = set()
        self._lock = threading.Lock()
        self._looking = False

    @property
    def guests(self) -> int:
        """How many lanes rest now."""
        with self._lock:
            return len(self._guests)

    def rest(self, consumer: Consumer, wake: threading.Event, seconds: float) -> Message | None:
        """Waits for the consumer's next event, for ``wake``, or for the time to pass.

        The room's thread uses the consumer meanwhile, so its callbacks are called there; the caller
        waits, and has it for itself again afterwards.

        Raises:
            Exception: whatever ``poll`` would.
        """
        guest = _IdleLane(consumer, wake)
        with self._lock:
            self._guests.add(guest)
            if not self._looking:
                self._looking = True
                threading.Thread(target=self._look_after, name="rest-room", daemon=True).start()
        wake.wait(seconds)
        with self._lock:  # a look that is going on is over then
            self._guests.remove(guest)
        if isinstance(guest.answer, Exception):
            raise guest.answer
        return guest.answer

    def for_lane(self, wake: threading.Event, *, told: Callable[[], bool]) -> Rest:
        """The rest of one lane: ``wake`` is set for it when it is told something."""

        def rest(consumer: Consumer, seconds: float) -> Message | None:
            wake.clear()
            # What was told before the signal was cleared must not wait.
            return None if told() else self.rest(consumer, wake, seconds)

        return rest

    def _look_after(self) -> None:
        while self._open():
            time.sleep(LOOK_SECONDS)  # the pace is the point
            with self._lock:
                for guest in self._guests:
                    if guest.answer is None:
                        guest.answer = _answer(guest.consumer)
                        if guest.answer is not None:
                            guest.wake.set()

    def _open(self) -> bool:
        """Ends the thread once nobody rests any more."""
        with self._lock:
            self._looking = bool(self._guests)
            return self._looking


def _answer(consumer: Consumer) -> Message | Exception | None:
    try:
        return consumer.poll(0)
    except Exception as error:  # noqa: BLE001  the lane's to deal with; the others rest on
        return error
