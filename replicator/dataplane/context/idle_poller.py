"""One thread that polls the consumers of all idle lanes of a process.

A thread that waits in the client for its next record wakes up five times a second all the same: the
library looks for signals in between (confluent-kafka 2.16). A hundred idle lanes of a process would
wake up five hundred times a second; here it is five times for all of them together.
"""

import threading
import time
from collections.abc import Callable
from typing import Protocol

from replicator.kafka.clients.client import Message

POLL_SECONDS = 0.2
"""How often idle lanes are polled: the first record after a silence is late by as much."""


class Polled(Protocol):
    """A consumer that can be polled."""

    def poll(self, timeout: float, /) -> Message | None:
        """Its next event."""
        ...


IdleWait = Callable[[Polled, float], Message | None]
"""Waits for a consumer's next event for so many seconds, as its ``poll`` would."""


class _IdleLane:
    """A lane that waits. ``answer`` is what its consumer had, or what its ``poll`` raised."""

    def __init__(self, consumer: Polled, wake: threading.Event) -> None:
        self.consumer = consumer
        self.wake = wake
        self.answer: Message | Exception | None = None


class IdlePoller:
    """For the lanes of one process; its thread runs while one of them is idle."""

    def __init__(self) -> None:
        self._idle_lanes: set[_IdleLane] = set()
        self._lock = threading.Lock()
        self._polling = False

    def wait(self, consumer: Polled, wake: threading.Event, seconds: float) -> Message | None:
        """Waits for the consumer's next event, for ``wake``, or for the time to pass.

        The poller's thread uses the consumer meanwhile, so its callbacks are called there; after the
        call the consumer belongs to the caller alone again.

        Raises:
            Exception: whatever ``poll`` would.
        """
        idle_lane = _IdleLane(consumer, wake)
        with self._lock:
            self._idle_lanes.add(idle_lane)
            if not self._polling:
                self._polling = True
                threading.Thread(target=self._run, name="idle-poller", daemon=True).start()
        wake.wait(seconds)
        with self._lock:  # after a poll that is going on
            self._idle_lanes.remove(idle_lane)
        if isinstance(idle_lane.answer, Exception):
            raise idle_lane.answer
        return idle_lane.answer

    def for_lane(self, wake: threading.Event, *, interrupted: Callable[[], bool]) -> IdleWait:
        """The wait of one lane: ``wake`` is set when it is ``interrupted`` by a command."""

        def wait(consumer: Polled, seconds: float) -> Message | None:
            wake.clear()
            # A command that came before the signal was cleared must not wait.
            return None if interrupted() else self.wait(consumer, wake, seconds)

        return wait

    def _run(self) -> None:
        while self._has_idle_lanes():
            time.sleep(POLL_SECONDS)  # one poll of everything per interval, however many lanes
            with self._lock:
                for idle_lane in self._idle_lanes:
                    if idle_lane.answer is None:
                        idle_lane.answer = _answer(idle_lane.consumer)
                        if idle_lane.answer is not None:
                            idle_lane.wake.set()

    def _has_idle_lanes(self) -> bool:
        """The thread ends when there are none."""
        with self._lock:
            self._polling = bool(self._idle_lanes)
            return self._polling


def _answer(consumer: Polled) -> Message | Exception | None:
    try:
        return consumer.poll(0)
    except Exception as error:  # noqa: BLE001  raised in the lane's thread
        return error
