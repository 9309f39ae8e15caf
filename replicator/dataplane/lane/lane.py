"""A lane: one thread that takes over, copies, recovers and hands back.

All state that matters is on the target (the lane's checkpoints); the thread can be lost at any
instant. Fenced means replaced: the lane then ends at once and says so, it never takes itself back.
"""

import gc
import random
import threading
from collections import deque
from collections.abc import Callable

from replicator.backoff import Backoff
from replicator.clock import Clock
from replicator.dataplane.copy.quarantine_writer import QuarantineWriter
from replicator.dataplane.lane.bounded_copy import BoundedCopy
from replicator.dataplane.lane.connection_problems import ConnectionProblems
from replicator.dataplane.lane.idle_poller import IdlePoller
from replicator.dataplane.lane.lane_throttle import LaneThrottle
from replicator.dataplane.lane.partitions import LanePartitions
from replicator.dataplane.lane.session_clients import LaneClients
from replicator.dataplane.lane.session_factory import open_clients
from replicator.dataplane.lane.slow_range import RetryRange
from replicator.dataplane.progress.index_notes import OpenIndex
from replicator.dataplane.progress.lane_counters import LaneCounters
from replicator.dataplane.progress.partition_state import PartitionState
from replicator.dataplane.transport.messages import LaneStopped, LogLine, LostRange
from replicator.dataplane.transport.spec import LaneSpec, handed_over
from replicator.errors import FencedError, RecordRefusedError, ReplicatorError, UnknownOutcomeError
from replicator.formats.lane_stats import LaneState, LaneStats
from replicator.kafka.client import KafkaException
from replicator.kafka.errors import map_kafka_error

RETRY = Backoff(0.2, 5.0)
RECHECK_SECONDS = 2.0
"""How often a partition the source could not answer for is asked about again."""

STATS_SECONDS = 1.0
IDLE_STATS_SECONDS = 5.0
"""A lane in which nothing moves says so less often: a hundred quiet partitions cost next to nothing."""

RESTED_STATS_SECONDS = 15.0
"""And one that has said so already, less often still."""

DRAIN_SECONDS = 8.0
"""How long a lane that was told to stop waits for a silent target; the group's session ends sooner,
so the lane's next owner is at work by then, and has fenced it."""

Post = Callable[[LaneStopped | LostRange | LogLine], None]

MayStart = Callable[[LaneSpec], bool]
"""Asked after the last owner was fenced and before its checkpoints are read: does the lane layout
the spec was made from still hold? Without it a lane could start on a layout that just changed."""


class Lane(threading.Thread):
    """Owns its clients alone; other threads only post commands and read the last stats."""

    def __init__(
        self,
        spec: LaneSpec,
        *,
        post: Post,
        may_start: MayStart,
        clock: Clock,
        open_index: OpenIndex | None = None,
        errand: BoundedCopy | None = None,
        on_stats: Callable[[], None] = lambda: None,
        room: IdlePoller | None = None,
    ) -> None:
        """With an ``errand`` it ends by itself, once that is done.

        ``on_stats`` hears, in the lane's thread, that ``stats`` are new. With a ``room`` it rests
        there when nothing has come for a while.
        """
        super().__init__(
            name=f"lane-{spec.source.alias}-{spec.target.alias}-{spec.lane}", daemon=True
        )
        self._spec = spec
        self._post = post
        self._may_start = may_start
        self._open_index = open_index
        self._errand = errand
        self._on_stats = on_stats
        self._clock = clock
        self._commands: deque[Callable[[], None]] = deque()
        self._wake = threading.Event()
        self._rest = None if room is None else room.for_lane(self._wake, told=self._was_told)
        self._stopping = False
        self._stop_token = 0
        self._outdated = False
        self._reopen = False
        self._give_up_at = float("inf")
        self._figures = LaneCounters()
        self._flow_control = LaneThrottle(spec.throttle, now=clock.monotonic())
        self._quarantine = QuarantineWriter(spec, clock=clock)
        self._clients: LaneClients | None = None
        self._partitions: LanePartitions | None = None
        self._stretch = RetryRange()
        self._state: LaneState = "starting"
        self._reason = "taking over"
        self._sides = ConnectionProblems(source=spec.source.alias, target=spec.target.alias)
        self._told_copied = 0
        self._rested = False
        self._stats_at = 0.0
        self._recheck_at = 0.0
        self.stats = self._collect()
        self.heard_at = clock.monotonic()
        """When it last went round; a lane whose target does not answer a commit stays in there."""

    # Called by other threads.

    def problems(self) -> tuple[str, str]:
        """What is wrong with source and target at this moment, as ``LaneStats`` tells it."""
        return self._sides.source, self._sides.target

    @property
    def spec(self) -> LaneSpec:
        """What the lane was last told to do."""
        return self._spec

    def update(self, spec: LaneSpec) -> None:
        """Goes on with another work list or share; the settings must be the same."""
        self._command(lambda: self._apply(spec))

    def _apply(self, spec: LaneSpec) -> None:
        outdated = handed_over(self._spec, spec)
        self._spec = spec
        self._flow_control.set(spec.throttle, now=self._clock.monotonic())
        if self._clients is None or (self._clients.serves(spec) and not outdated):
            self._known().follow(spec)
        else:
            self._reopen = True

    def _known(self) -> LanePartitions:
        if self._partitions is None:
            raise RuntimeError("a lane has no partitions before its take-over")
        return self._partitions

    def _all(self) -> list[PartitionState]:
        return [] if self._partitions is None else list(self._partitions.routes.values())

    def stop(self, token: int) -> None:
        """Asks for a commit and an end; LaneStopped with the token follows."""
        self._stop_token = token
        self._give_up_at = self._clock.monotonic() + DRAIN_SECONDS
        self._stopping = True
        self._wake.set()

    def _was_told(self) -> bool:
        return self._stopping or bool(self._commands)

    def _command(self, command: Callable[[], None]) -> None:
        self._commands.append(command)
        self._wake.set()

    # The thread.

    def run(self) -> None:
        """Takes over and copies until stopped or fenced."""
        fenced = False
        failures = 0
        while not self._stopping:
            began = self._clock.monotonic()
            try:
                self._work()
            except FencedError:
                fenced = True
                break
            except RecordRefusedError as error:
                self._figures.roll_back()
                self._remember_stretch(error)
            except (ReplicatorError, KafkaException) as error:
                if self._is_fenced(error):
                    fenced = True
                    break
                self._figures.roll_back()
                self._recovering(error)
                failures = 1 if self._clock.monotonic() - began > 30 else failures + 1
                self._pause(RETRY.seconds(failures, random.random))
            except Exception as error:  # noqa: BLE001  a lane must never die in silence
                self._log("error", "lane failed unexpectedly", error=repr(error))
                self._recovering(ReplicatorError(f"unexpected: {error!r}"))
                self._pause(RETRY.most_seconds)
            finally:
                self._close()
        self._state = "failed" if fenced else "stopped"
        self._reason = "replaced by another owner" if fenced else "stopped"
        if self._outdated:
            self._reason = "the lane layout has changed"
        self.stats = self._collect()
        self._post(
            LaneStopped(
                pair=self._spec.pair,
                lane=self._spec.lane,
                token=self._stop_token,
                fenced=fenced,
                reason=self._reason,
            )
        )

    def _work(self) -> None:
        """One session: take over, loop until told to stop, commit."""
        self._state, self._reason = "starting", "taking over"
        self._reopen = False
        spec = self._spec
        clients = self._clients = open_clients(
            spec,
            clock=self._clock,
            figures=self._figures,
            flow_control=self._flow_control,
            quarantine=self._quarantine,
            careful_until=self._stretch.until,
            examine=lambda suspects: self._known().examine(suspects),
            on_problem=self._sides.note,
            give_up=lambda: self._clock.monotonic() > self._give_up_at,
            errand=self._errand,
            rest=self._rest,
        )
        if not clients.fence_last_owner(lambda: self._stopping):
            return
        if not self._may_start(spec):
            self._stopping = True
            self._outdated = True
            return
        checkpoints = clients.read_checkpoints(self._open_index)
        if self._errand is not None:
            self._errand.plan_start(spec, checkpoints)
        self._partitions = LanePartitions(
            spec, clients=clients, checkpoints=checkpoints, post=self._post
        )
        self._partitions.follow(spec)
        self._state, self._reason = "running", "copying"
        session = clients.session
        while not self._stopping:
            while self._commands:
                self._commands.popleft()()
            if self._reopen:
                session.commit()
                return  # the next session's clients suit the new work
            session.step()
            if clients.careful and self._stretch.is_past(self._all()):
                session.commit()
                self._stretch.forget()
                return  # the next session runs at full speed
            if self._errand is not None and self._errand.over(self._all()):
                self._errand.finish(session, self._all())
                self._stopping = True
                return
            self._tick()
        session.commit()

    def _tick(self) -> None:
        now = self.heard_at = self._clock.monotonic()
        # Canaries do not count: a lane that copies nothing else has nothing to tell.
        copied = self._figures.outcome.copied + sum(self._figures.outcome.dropped.values())
        pause = STATS_SECONDS
        if copied == self._told_copied and not self._sides.any():
            pause = RESTED_STATS_SECONDS if self._rested else IDLE_STATS_SECONDS
        if now - self._stats_at >= pause:
            self._stats_at = now
            self._rested = copied == self._told_copied
            self._told_copied = copied
            if self._clients is not None:
                self._clients.session.read_source_ends()
                self._sides.clear_answered(
                    commits=self._figures.commits,
                    read=self._figures.outcome.read,
                    answers=self._clients.answers,
                )
            stats = self._collect()
            if stats != self.stats:  # the same object is not sent again
                self.stats = stats
                self._on_stats()
        if now >= self._recheck_at:
            self._recheck_at = now + RECHECK_SECONDS
            self._known().recheck()

    # Trouble.

    def _remember_stretch(self, error: RecordRefusedError) -> None:
        """A record in what was just produced is refused: the next session copies it carefully."""
        self._log("warning", "target refused a record, copying the stretch record by record",
                  error=error.message)  # fmt: skip
        self._figures.aborts += 1
        self._stretch.remember(self._all())

    def _is_fenced(self, error: ReplicatorError | KafkaException) -> bool:
        if isinstance(error, KafkaException):
            if isinstance(self._mapped(error), FencedError):
                return True
            return self._clients is not None and self._clients.replaced(error)
        return isinstance(error, FencedError)

    def _mapped(self, error: KafkaException) -> ReplicatorError:
        return map_kafka_error(
            error.args[0], subject=f"cluster:{self._spec.target.alias}", doing="write records"
        )

    def _recovering(self, error: ReplicatorError | KafkaException) -> None:
        mapped = self._mapped(error) if isinstance(error, KafkaException) else error
        if isinstance(mapped, UnknownOutcomeError):
            self._figures.unknown_outcomes += 1
        else:
            self._figures.aborts += 1
        self._state, self._reason = "recovering", mapped.message
        self._sides.blame(mapped)
        self.stats = self._collect()
        self._on_stats()
        self._log("warning", "lane recovers from its checkpoints", error=mapped.message)

    def _pause(self, seconds: float) -> None:
        self._wake.clear()
        if not self._stopping:
            self._wake.wait(seconds)

    def _close(self) -> None:
        clients, self._clients = self._clients, None
        if clients is not None:
            clients.close()
            del clients
            # Callbacks tie the clients into cycles: without this their threads would live on.
            gc.collect()

    # Telling.

    def _log(self, level: str, event: str, **fields: str) -> None:
        self._post(
            LogLine(
                level,
                event,
                {
                    "flow": self._spec.pair,
                    "link": self._spec.link,
                    "lane": str(self._spec.lane),
                    **fields,
                },
            )
        )

    def _collect(self) -> LaneStats:
        return self._figures.stats(
            pair=self._spec.pair,
            link=self._spec.link,
            lane=self._spec.lane,
            state=self._state,
            reason=self._reason,
            partitions=tuple(route.stats() for route in self._all()),
            source_problem=self._sides.source,
            target_problem=self._sides.target,
            checkpoint_at_ms=max((route.committed_at_ms for route in self._all()), default=0),
        )
