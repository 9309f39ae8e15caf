"""The worker's side of its lane processes: starts them, spreads lanes over them, reads their events."""

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import replace

from replicator.backoff import Backoff
from replicator.dataplane.process.pooled_process import LaneKey, PooledProcess
from replicator.dataplane.process.spawn import LaneChild, start_child
from replicator.dataplane.transport.messages import (
    KeepLogin,
    LaneStopped,
    LogLine,
    LostRange,
    StartLane,
    Stats,
    StopLane,
)
from replicator.dataplane.transport.spec import LaneSpec
from replicator.dataplane.transport.stats_changes import with_change
from replicator.formats.lane_stats import LaneStats
from replicator.logins.cluster_login import login_of
from replicator.policy.capacity.memory_shares import MemoryShare, lane_share

CRASH_LOOP_SECONDS = 10.0
"""A process that exits sooner after its start was likely ended by something that lasts: no memory left,
a broken installation. Two in a row are a crash loop."""

RESTART = Backoff(2.0, 30.0)

CLOSE_SECONDS = 2.0

SILENT_SECONDS = 10.0
"""A lane process sends a word every two seconds; one without a word for so long stands still."""

START_SECONDS = 60.0
"""A lane process that starts imports first, for a second or two; one without a first word for so long never comes up.
Twice as long after each in a row, for a machine that is so slow."""

SLEPT_SECONDS = 5.0
"""Where the worker itself was not at work for so long, the silence may be its own."""


class LanePool:
    """Lane processes and the lanes in them; thread-safe.

    A process that dies is replaced and ``on_event`` gets a LaneStopped for each of its lanes, whose
    owner starts them again. It is replaced at once, except in a crash loop.
    """

    def __init__(
        self,
        children: Iterable[LaneChild],
        *,
        processes: int,
        on_event: Callable[[LaneStopped | LostRange | LogLine], None],
        on_stats: Callable[[], None] = lambda: None,
        memory: MemoryShare = MemoryShare(),  # noqa: B008  frozen, so one instance is safe
    ) -> None:
        """``processes``: how many there may be; those beyond the children start once lanes need them.

        ``memory`` is what all lanes together may hold.
        """
        self._most = processes
        self._memory = memory
        self._awaited = 0
        self._share = memory
        self._specs: dict[LaneKey, LaneSpec] = {}
        self._early_exits = self._late_starts = 0
        self._judged_at = time.monotonic()
        self._on_event = on_event
        self._on_stats = on_stats
        self._lock = threading.RLock()
        self._closed = threading.Event()
        self._token = 0
        self._waiting: dict[int, threading.Event] = {}
        self._process_of: dict[LaneKey, PooledProcess] = {}
        with (
            self._lock
        ):  # one that dies at once is replaced, but not before the list of them is there
            self._processes = [
                PooledProcess(child, self._on_message, self._on_exit) for child in children
            ]

    @property
    def processes(self) -> int:
        """How many lane processes there may be."""
        return self._most

    @property
    def records_bytes(self) -> int:
        """What all lanes together may hold of records; 0 is no bound."""
        return self._memory.size_bytes

    @property
    def lane_bytes(self) -> int:
        """What each lane may hold of them now; 0 is no bound."""
        return self._share.size_bytes

    def start(self, spec: LaneSpec) -> None:
        """Starts the lane in the emptiest process, or updates it where it runs."""
        key = (spec.pair, spec.lane)
        with self._lock:
            if self._closed.is_set():
                return
            process = self._process_of.get(key)
            if process is None:
                process = min(self._processes, key=lambda item: len(item.lanes))
                if process.lanes and len(self._processes) < self._most:
                    process = self._spawn()
                process.lanes[key] = None
                self._process_of[key] = process
            self._specs[key] = spec
            for cluster in (spec.source, spec.target):
                # A process that starts now would read from the files what brokers refuse.
                if (kept := login_of(cluster).kept()) is not None:
                    process.send(KeepLogin(cluster, kept))
            if not self._divide_memory():
                process.send(StartLane(replace(spec, memory=self._share)))

    def _divide_memory(self) -> bool:
        """Every lane's part; where it got smaller, every lane is told, and whether that was done."""
        size = lane_share(self._memory.size_bytes, max(self._awaited, len(self._specs)))
        smaller = size < self._share.size_bytes
        self._share = replace(self._memory, size_bytes=size)
        if smaller:
            for key, process in self._process_of.items():
                process.send(StartLane(replace(self._specs[key], memory=self._share)))
        return smaller

    def expect(self, lanes: int) -> None:
        """So many lanes more are about to start: their processes start now."""
        with self._lock:
            self._awaited = len(self._process_of) + lanes
            wanted = min(self._most, self._awaited)
            while len(self._processes) < wanted and not self._closed.is_set():
                self._spawn()

    def stop(self, keys: list[LaneKey], *, timeout_seconds: float) -> list[LaneKey]:
        """Drains lanes together and waits; returns those that did not end in time.

        Such a lane does no harm (its next owner fences it), but its last work may be done again.
        """
        waiting: list[tuple[LaneKey, threading.Event]] = []
        with self._lock:
            for key in keys:
                process = self._process_of.get(key)
                if process is None:
                    continue
                self._token += 1
                event = self._waiting[self._token] = threading.Event()
                waiting.append((key, event))
                process.send(StopLane(key[0], key[1], self._token))
        limit = threading.Event()
        timer = threading.Timer(timeout_seconds, limit.set)
        timer.daemon = True
        timer.start()
        late = []
        for key, event in waiting:
            while not event.wait(0.02):
                if limit.is_set():
                    late.append(key)
                    break
        timer.cancel()
        return late

    def stats(self) -> list[LaneStats]:
        """The newest statistics of every lane."""
        with self._lock:
            return [
                stats
                for process in self._processes
                for stats in process.lanes.values()
                if stats is not None
            ]

    def replace_silent(self) -> None:
        """Kills processes that stand still; each is replaced, and its lanes are fenced by their next start.

        Called about once a second.
        """
        now = time.monotonic()
        with self._lock:
            slept, self._judged_at = now - self._judged_at > SLEPT_SECONDS, now
            for process in self._processes:
                if slept:
                    process.excuse()
                elif process.begun and process.silent_seconds > SILENT_SECONDS:
                    self._end_silent(process, "a lane process stands still and is replaced")
                elif process.begun:
                    self._late_starts = 0
                elif process.silent_seconds > START_SECONDS * 2**self._late_starts:
                    self._late_starts += 1
                    self._end_silent(process, "a lane process does not come up and is replaced")

    def _end_silent(self, process: PooledProcess, event: str) -> None:
        fields = {"pid": str(process.pid), "silent": f"{process.silent_seconds:.0f} s"}
        self._on_event(LogLine("error", event, fields))
        process.end_silent()

    def show_stacks(self) -> None:
        """Has the processes write where their threads are; without a lock, as that may be what is held."""
        for process in list(self._processes):
            process.show_stacks()

    def close(self) -> None:
        """Ends the processes within ``CLOSE_SECONDS``, all together; lanes should have been stopped before."""
        with self._lock:
            self._closed.set()
            processes = list(self._processes)
        for process in processes:
            process.hang_up()
        deadline = time.monotonic() + CLOSE_SECONDS
        for process in processes:
            process.end(max(0.0, deadline - time.monotonic()))

    def _on_message(
        self, process: PooledProcess, event: LaneStopped | LostRange | LogLine | Stats
    ) -> None:
        if isinstance(event, Stats):
            if not event.lanes:
                return
            with self._lock:
                for change in event.lanes:
                    key = (change.stats.pair, change.stats.lane)
                    if key in process.lanes:
                        process.lanes[key] = with_change(process.lanes[key], change)
            self._on_stats()
            return
        if isinstance(event, LaneStopped):
            self._remove(process, (event.pair, event.lane))
            with self._lock:
                waiting = self._waiting.pop(event.token, None)
            if waiting is not None:
                waiting.set()
        self._on_event(event)

    def _remove(self, process: PooledProcess, key: LaneKey) -> None:
        with self._lock:
            process.lanes.pop(key, None)
            if self._process_of.get(key) is process:
                del self._process_of[key]
                self._specs.pop(key, None)
                self._awaited = max(0, self._awaited - 1)

    def _spawn(self) -> PooledProcess:
        process = PooledProcess(start_child(), self._on_message, self._on_exit)
        self._processes.append(process)
        return process

    def _on_exit(self, process: PooledProcess) -> None:
        """In the thread of a process that died: replaces it, and reports its lanes as stopped."""
        pause = self._restart_delay(process)
        if pause and not self._closed.is_set():
            fields = {"exit_code": str(process.exit_code), "next_in_seconds": f"{pause:g}"}
            self._on_event(LogLine("warning", "lane processes crash in a loop", fields))
        if self._closed.wait(pause):
            return
        with self._lock:
            if self._closed.is_set():
                return
            lanes = list(process.lanes)
            self._processes.remove(process)
            self._spawn()
        for key in lanes:
            self._remove(process, key)
            self._on_event(LaneStopped(key[0], key[1], 0, fenced=False, reason="its process died"))

    def _restart_delay(self, process: PooledProcess) -> float:
        """Seconds; none after the first early exit, as any accident may end one."""
        with self._lock:
            early = process.age_seconds < CRASH_LOOP_SECONDS
            self._early_exits = self._early_exits + 1 if early else 0
            if self._early_exits < 2:
                return 0.0
            return RESTART.seconds(self._early_exits - 1)
