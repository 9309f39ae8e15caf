"""One lane process as its worker sees it: its socket, its orders, its words, its end."""

import contextlib
import queue
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable

from replicator.dataplane.process.spawn import LaneChild
from replicator.dataplane.transport.messages import (
    KeepLogin,
    LaneStopped,
    LogLine,
    LostRange,
    StartLane,
    Stats,
    StopLane,
    decode_event,
    encode,
)
from replicator.formats.lane_stats import LaneStats

LaneKey = tuple[str, int]
"""Pair as people write it, and lane number."""

STACKS_SECONDS = 1.0
"""How long a process that stands still may take to write where its threads are, before it is killed."""


class PooledProcess:
    """One lane process: its socket, its reader thread, and the lanes in it."""

    def __init__(
        self,
        child: LaneChild,
        on_message: Callable[["PooledProcess", LaneStopped | LostRange | LogLine | Stats], None],
        on_exit: Callable[["PooledProcess"], None],
    ) -> None:
        self.lanes: dict[LaneKey, LaneStats | None] = {}
        self._on_message = on_message
        self._on_exit = on_exit
        self._socket, self._child = child.connection, child.process
        self._orders: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        """A thread sends them: one that takes none must not hold up who gives them."""
        self._began = self._heard_at = time.monotonic()
        self.pid = self._child.pid
        self.begun = False
        """Whether it said anything yet."""
        self._ending = False
        for part, name in ((self._read, "lane-process"), (self._send_orders, "lane-orders")):
            threading.Thread(target=part, name=f"{name}-{self.pid}", daemon=True).start()

    @property
    def age_seconds(self) -> float:
        """How long ago it was taken into the pool."""
        return time.monotonic() - self._began

    @property
    def silent_seconds(self) -> float:
        """How long ago its last word came, or it started; 0 once it is being ended."""
        return 0.0 if self._ending else time.monotonic() - self._heard_at

    def excuse(self) -> None:
        """Its silence is counted from now on."""
        self._heard_at = time.monotonic()

    def end_silent(self) -> None:
        """Has it write where its threads are, then kills it, also while it is stopped by a signal; does not wait.

        The reader then reports its end.
        """
        self._ending = True
        self.show_stacks()
        killing = threading.Timer(STACKS_SECONDS, self._child.kill)
        killing.daemon = True
        killing.start()

    def show_stacks(self) -> None:
        """One that has not begun may not know the signal yet, and would end."""
        if self.begun:
            self._child.send_signal(signal.SIGUSR1)

    @property
    def exit_code(self) -> int | None:
        """None while it runs."""
        return self._child.poll()

    def send(self, command: StartLane | StopLane | KeepLogin) -> None:
        """Sends a command, in order, and does not wait; a process that is gone is noticed by the reader."""
        self._orders.put(encode(command))

    def hang_up(self) -> None:
        """Closes the socket, which ends the process; does not wait."""
        # shutdown, not close: the reader's file object keeps the descriptor open
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._orders.put(b"")

    def end(self, timeout_seconds: float) -> None:
        """Waits for its end, and kills it after the time."""
        try:
            self._child.wait(timeout_seconds)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()

    def _read(self) -> None:
        try:
            with self._socket, self._socket.makefile("rb") as lines:
                for line in lines:
                    self._heard_at, self.begun = time.monotonic(), True
                    self._on_message(self, decode_event(line))
        except (OSError, ValueError):
            pass  # closed under the reader: the process is ended or ending
        self._child.wait()
        self._orders.put(b"")
        self._on_exit(self)

    def _send_orders(self) -> None:
        while order := self._orders.get():
            try:
                self._socket.sendall(order)
            except OSError:
                return  # it ended, or is ended
