"""A lane process: runs lanes, exchanges JSON lines with its worker, and ends when the worker ends.

Started with one end of a socket pair (its entry point is ``replicator.wiring.lane_main``), with Ctrl-C
and SIGTERM blocked: the worker decides when lanes drain. It is a process of its own because the client library
holds the interpreter's lock: speed comes from processes. However the worker ends, the socket closes,
and then this process ends at once: what was not committed is aborted by the next owner.
"""

import contextlib
import gc
import os
import socket
import threading

from replicator.clock import SystemClock
from replicator.dataplane.context.idle_poller import IdlePoller
from replicator.dataplane.lane.lane import Lane, MayStart
from replicator.dataplane.lane.turn import Turn
from replicator.dataplane.process.still_lanes import StillLanes
from replicator.dataplane.progress.index_notes import OpenIndex
from replicator.dataplane.transport.messages import (
    KeepLogin,
    LaneStopped,
    LogLine,
    LostRange,
    StartLane,
    Stats,
    decode_command,
    encode,
)
from replicator.dataplane.transport.spec import LaneSpec
from replicator.dataplane.transport.stats_changes import lane_change
from replicator.formats.lane_stats import LaneStats
from replicator.logins.cluster_login import ClusterLogin, login_of
from replicator.topology.plan import ClusterPlan

STATS_SECONDS = 0.5

WORD_SECONDS = 2.0
"""A word goes to the worker at least this often: a process without one for long stands still."""


class LaneProcess:
    """The lanes of one process by pair and number, and the socket to the worker."""

    def __init__(
        self, connection: socket.socket, *, may_start: MayStart, open_index: OpenIndex
    ) -> None:
        self._may_start = may_start
        self._open_index = open_index
        self._connection = connection
        self._sending = threading.Lock()
        self._lanes: dict[tuple[str, int], Lane] = {}
        self._restarting: dict[tuple[str, int], LaneSpec] = {}
        self._lock = threading.Lock()
        self._clock = SystemClock()
        self._new_stats = threading.Event()
        self._idle_poller = IdlePoller()
        self._turn = Turn()
        self._logins: dict[ClusterPlan, ClusterLogin] = {}

    def serve(self) -> None:
        """Carries out commands until the worker closes the socket.

        A thread that an error ends, ends the process: the worker replaces it, and nothing stands still.
        """
        threading.excepthook = self._thread_failed
        threading.Thread(target=self._send_stats, name="stats", daemon=True).start()
        with self._connection.makefile("rb") as lines:
            for line in lines:
                command = decode_command(line)
                if isinstance(command, StartLane):
                    self._start(command.spec)
                elif isinstance(command, KeepLogin):
                    login = self._logins[command.cluster] = login_of(command.cluster)
                    login.keep(command.security)
                else:
                    self._stop((command.pair, command.lane), command.token)

    def _start(self, spec: LaneSpec) -> None:
        key = (spec.pair, spec.lane)
        with self._lock:
            lane = self._lanes.get(key)
            if lane is None:
                self._launch(key, spec)
            elif _can_continue(lane.spec, spec) and key not in self._restarting:
                lane.update(spec)
            else:
                self._restarting[key] = spec
                lane.stop(0)

    def _launch(self, key: tuple[str, int], spec: LaneSpec) -> None:
        lane = Lane(spec, post=lambda event: self._post(key, event), may_start=self._may_start,
                    clock=self._clock, open_index=self._open_index,
                    on_stats=self._new_stats.set, idle_poller=self._idle_poller,
                    turn=self._turn)  # fmt: skip
        self._lanes[key] = lane
        self._new_stats.set()
        lane.start()

    def _stop(self, key: tuple[str, int], token: int) -> None:
        with self._lock:
            self._restarting.pop(key, None)
            lane = self._lanes.get(key)
        if lane is None:
            self._send(LaneStopped(key[0], key[1], token, fenced=False, reason="was not running"))
        else:
            lane.stop(token)

    def _post(self, key: tuple[str, int], event: LaneStopped | LostRange | LogLine) -> None:
        if isinstance(event, LaneStopped):
            with self._lock:
                self._lanes.pop(key, None)
                again = self._restarting.pop(key, None)
                if again is not None and not event.fenced:
                    self._launch(key, again)
                    return
        self._send(event)

    def _send_stats(self) -> None:
        """Whenever a lane has new statistics; sends those that come close together in one message.

        Where nothing is new, a message without any says that this process is at work.
        """
        sent: dict[Lane, LaneStats] = {}
        still = StillLanes(clock=self._clock, post=self._send)
        self._send(Stats(()))
        while True:
            if self._new_stats.wait(WORD_SECONDS):
                self._clock.sleep(STATS_SECONDS)
            self._new_stats.clear()
            with self._lock:
                lanes = list(self._lanes.values())
            now = still.pictures(lanes)
            # By lane, not by its number: the worker forgets what it knew of one that has stopped.
            changes = tuple(
                lane_change(sent.get(lane), stats)
                for lane, stats in now.items()
                if sent.get(lane) is not stats
            )
            sent = now
            self._send(Stats(changes))

    def _thread_failed(self, ended: threading.ExceptHookArgs) -> None:
        name = "?" if ended.thread is None else ended.thread.name
        fields = {"thread": name, "error": repr(ended.exc_value)}
        self._send(LogLine("error", "a thread of a lane process ended by an error", fields))
        os._exit(1)

    def _send(self, event: LaneStopped | LostRange | LogLine | Stats) -> None:
        with self._sending:
            try:
                self._connection.sendall(encode(event))
            except OSError:
                os._exit(0)  # the worker is gone: nothing here may outlive it


def _can_continue(old: LaneSpec, new: LaneSpec) -> bool:
    """Whether a running lane can go on with the new spec without a new take-over."""
    return (
        old.settings == new.settings
        and old.source == new.source
        and old.target == new.target
        and old.link == new.link
        and old.layout_epoch == new.layout_epoch
        and {(item.topic, item.partition): item.target_topic for item in old.work}.items()
        >= {
            (item.topic, item.partition): item.target_topic
            for item in new.work
            if (item.topic, item.partition) in {(o.topic, o.partition) for o in old.work}
        }.items()
    )


def run_lane_process(descriptor: int, *, may_start: MayStart, open_index: OpenIndex) -> None:
    """Serves the worker at the other end of the inherited socket; never returns."""
    # The hot path makes short-lived objects only: looking at the imported world again and again
    # costs 2 to 4 % of a busy lane.
    gc.freeze()
    gc.set_threshold(100_000, 50, 50)
    gc.enable()
    with contextlib.suppress(OSError):  # a worker killed before it read everything resets
        connection = socket.socket(fileno=descriptor)
        LaneProcess(connection, may_start=may_start, open_index=open_index).serve()
    # The worker ended, by itself or not: leave at once, without waiting for any broker.
    os._exit(0)
