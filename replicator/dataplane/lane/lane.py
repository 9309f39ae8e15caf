"""A lane: one thread that takes over, copies, recovers and hands back.

All state that matters is on the target (the lane's checkpoints); the thread can be lost at any
instant. A lane that was fenced has another owner: it ends at once, and never takes over by itself.
"""

import random
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import replace

from replicator.backoff import Backoff
from replicator.clock import Clock
from replicator.dataplane.context.idle_poller import IdlePoller
from replicator.dataplane.context.lane_context import LaneContext
from replicator.dataplane.context.lane_throttle import LaneThrottle
from replicator.dataplane.copy.quarantine_writer import QuarantineWriter
from replicator.dataplane.health.connection_problems import ConnectionProblems
from replicator.dataplane.health.held_id import HeldId
from replicator.dataplane.health.stuck_writes import StuckWrites
from replicator.dataplane.lane.clients_change import ClientsChange, clients_for, close_clients
from replicator.dataplane.lane.lane_failures import LaneFailures
from replicator.dataplane.lane.lane_report import LaneReport
from replicator.dataplane.lane.login_wait import tried, wait_for_login
from replicator.dataplane.lane.misled_clients import MisledClients
from replicator.dataplane.lane.partition_news import PartitionNews
from replicator.dataplane.lane.partitions import LanePartitions
from replicator.dataplane.lane.periodic_checks import PeriodicChecks
from replicator.dataplane.lane.retry_range import RetryRange
from replicator.dataplane.lane.turn import Turn
from replicator.dataplane.lane.unseen_id import UnseenId, records_reason
from replicator.dataplane.progress.index_notes import OpenIndex
from replicator.dataplane.progress.lane_counters import LaneCounters
from replicator.dataplane.progress.partition_health import PartitionHealth
from replicator.dataplane.progress.partition_state import PartitionState
from replicator.dataplane.session.bounded_copy import BoundedCopy
from replicator.dataplane.session.clients_protocol import SessionClients
from replicator.dataplane.takeover.lane_records import EndOf
from replicator.dataplane.transport.messages import LaneStopped, LogLine, LostRange
from replicator.dataplane.transport.spec import LaneSpec, handed_over, lane_client_id
from replicator.errors import (
    FencedError,
    LogChangedError,
    PartitionsRefusedError,
    RecordRefusedError,
    ReplicatorError,
    SpentProducerError,
    UnseenCopiesError,
)
from replicator.formats.lane_stats import LaneStats
from replicator.identifiers import TopicPartition, checkpoints_topic
from replicator.kafka.clients.client import KafkaException
from replicator.kafka.clients.errors import bare_errors_as_exceptions
from replicator.logins.cluster_login import login_of
from replicator.policy.capacity.broker_quota import FIRST_BYTES, BrokerQuota
from replicator.wire.probes.line import offers_bbr

RETRY = Backoff(0.2, 5.0)
DRAIN_SECONDS = 8.0
"""How long a stopping lane waits for a silent target; the group's session ends sooner, so by then the
lane's next owner is at work, and has fenced this one."""

MISLED = "the source refutes what the lane's client reports, another is opened"
UNSEEN = (
    "the lane copies record by record for some seconds more, until readers know its producer id"
)

Post = Callable[[LaneStopped | LostRange | LogLine], None]

MayStart = Callable[[LaneSpec, EndOf], bool]
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
        bounded_copy: BoundedCopy | None = None,
        on_stats: Callable[[], None] = lambda: None,
        idle_poller: IdlePoller | None = None,
        turn: Turn | None = None,
    ) -> None:
        """With a ``bounded_copy`` the lane ends by itself, once the range is copied.

        ``on_stats`` is called in the lane's thread when ``stats`` are new. With an ``idle_poller`` the
        lane waits there when nothing has come for a while. Lanes that share a ``turn`` open their clients
        anew one after the other.
        """
        super().__init__(
            name=f"lane-{spec.source.alias}-{spec.target.alias}-{spec.lane}", daemon=True
        )
        self._spec = spec
        self._post = post
        self._may_start = may_start
        self._open_index = open_index
        self._bounded_copy = bounded_copy
        # Held between sessions too, or each would ask for a token of its own.
        self._logins = (login_of(spec.source), login_of(spec.target))
        self._tried = tried(self._logins)
        self._clock = clock
        self._commands: deque[Callable[[], None]] = deque()
        self._wake = threading.Event()
        self._stopping = False
        self._stop_token = 0
        self._outdated = False
        self._reopen = False
        self._misled = MisledClients()
        self._unseen = UnseenId(clock, goes_on=bounded_copy is None)
        self._counters = LaneCounters()
        quarantine = QuarantineWriter(spec, clock=clock)
        self._writes = StuckWrites(
            target=spec.target, client_id=lane_client_id(spec), clock=clock,
            checkpoints=(checkpoints_topic(spec.topology, spec.source.alias), spec.lane),
            quarantine=quarantine, counters=self._counters, states=self._states,
        )  # fmt: skip
        quarantine.ask = self._writes.ask_quarantine
        self._context = LaneContext(
            clock=clock,
            counters=self._counters,
            throttle=LaneThrottle(spec.throttle, now=clock.monotonic()),
            quarantine=quarantine,
            problems=ConnectionProblems(source=spec.source.alias, target=spec.target.alias),
            source_quota=BrokerQuota(spec.source.alias),
            target_quota=BrokerQuota(spec.target.alias, first_bytes=FIRST_BYTES),
            give_up=self._writes.give_up,
            on_flow=self._writes.on_flow,
            examine=lambda states: self._partitions_now().examine_reported(states),
            on_failure=lambda *failed: self._partitions_now().on_failure(*failed),
            idle_wait=None
            if idle_poller is None
            else idle_poller.for_lane(self._wake, interrupted=self._has_commands),
        )
        self._healths: dict[TopicPartition, PartitionHealth] = {}
        self._news = PartitionNews(lambda: self._spec, post=post)
        self._clients: SessionClients | None = None
        self._partitions: LanePartitions | None = None
        self._retry_range = RetryRange()
        self._report = LaneReport(
            lambda: self._spec, counters=self._counters, problems=self._context.problems,
            quotas=self._context.held_back, logins=self._logins, states=self._states, post=post, on_stats=on_stats,
        )  # fmt: skip
        self._failures = LaneFailures(
            spec.target.alias, context=self._context, report=self._report,
            clients=lambda: self._clients,
        )  # fmt: skip
        self._change = ClientsChange(
            self._open, name=self.name, turn=turn or Turn(), clock=clock,
            on_failure=self._failures.none_ahead,
        )  # fmt: skip
        self._held_id = HeldId(
            self._writes, target=spec.target.alias, clock=clock, on_held=self._held_by,
            places=lambda: [(work.target_topic, work.partition) for work in self._spec.work],
        )  # fmt: skip
        self._checks = PeriodicChecks(spec, report=self._report, context=self._context, clock=clock)
        self.active_at = clock.monotonic()
        """When its last step ended; a lane whose target does not answer a commit stays inside one."""

    # Called by other threads.

    def problems(self) -> tuple[str, str]:
        """What is wrong with source and target at this moment, as ``LaneStats`` states it."""
        return self._context.problems.source, self._context.problems.target

    @property
    def stats(self) -> LaneStats:
        """What it published last."""
        return self._report.stats

    @property
    def spec(self) -> LaneSpec:
        """The newest spec the lane works by."""
        return self._spec

    def update(self, spec: LaneSpec) -> None:
        """Goes on with another work list or share; the settings must be the same."""
        self._commands.append(lambda: self._apply(spec))
        self._wake.set()

    def stop(self, token: int) -> None:
        """Asks for a commit and an end; LaneStopped with the token follows."""
        self._stop_token = token
        self._writes.give_up_at = self._clock.monotonic() + DRAIN_SECONDS
        self._stopping = True
        self._wake.set()

    def _has_commands(self) -> bool:
        return self._stopping or bool(self._commands)

    # The thread.

    def run(self) -> None:
        """Takes over and copies until stopped or fenced; its end is told, whatever ends it."""
        fenced = False
        try:
            while not (self._stopping or fenced):
                try:
                    fenced = self._work()
                except Exception as error:  # noqa: BLE001  a lane must never die in silence
                    self._report.log("error", "lane failed unexpectedly", error=repr(error))
                    self._failures.recovering(ReplicatorError(f"unexpected: {error!r}"))
                    self._pause(RETRY.most_seconds)
        finally:
            self._end(fenced=fenced)

    def _work(self) -> bool:
        """Session after session; returns whether another owner took over."""
        failures = 0
        while not self._stopping:
            began, self._tried = self._clock.monotonic(), tried(self._logins)
            try:
                with bare_errors_as_exceptions():
                    self._run_session()
            except FencedError:
                return True
            except RecordRefusedError as error:
                self._counters.roll_back()
                if not self._sets_aside(error):
                    self._failures.one_by_one(error)
                    self._retry_range.refused(error, self._states())
            except (ReplicatorError, KafkaException) as error:
                if self._failures.is_fenced(error):
                    return True
                self._counters.roll_back()
                if self._sets_aside(self._failures.mapped(error)):
                    continue
                self._failures.recovering(error)
                if isinstance(error, SpentProducerError | UnseenCopiesError | LogChangedError):
                    continue  # both clusters work: nothing to wait for
                failures = 1 if self._clock.monotonic() - began > 30 else failures + 1
                self._pause(RETRY.seconds(failures, random.random))
            finally:
                self._close()
        return False

    def _end(self, *, fenced: bool) -> None:
        self._change.end()
        self._checks.end()
        reason = "replaced by another owner" if fenced else "stopped"
        if self._outdated:
            reason = "the lane layout has changed"
        self._report.end("failed" if fenced else "stopped", reason)
        spec, token = self._spec, self._stop_token
        self._post(LaneStopped(spec.pair, spec.lane, token=token, fenced=fenced, reason=reason))

    def _run_session(self) -> None:
        """Takes over, copies until the lane has to stop or to open other clients, and commits."""
        self._report.set("starting", "taking over")
        self._reopen = False
        clients = self._clients = self._change.next_clients(
            self._unseen.spec_now(self._spec), only_new=bool(self._retry_range)
        )
        spec = replace(self._spec, settings=clients.spec.settings)
        self._held_id.takeover_begins()
        if not clients.fence_last_owner(self._waits_no_longer):
            return
        if not self._may_start(spec, clients.end_of):
            self._stopping = self._outdated = True
            return
        checkpoints = clients.read_checkpoints(self._open_index, self._failures.unread)
        if self._unseen.taken_over(clients.unseen):
            self._report.log("info", UNSEEN)
            return
        if self._bounded_copy is not None:
            self._bounded_copy.plan_start(spec, checkpoints)
        self._partitions = LanePartitions(
            spec, clients=clients, checkpoints=checkpoints, news=self._news, clock=self._clock,
            healths=self._healths, refusals=self._writes.refusals_of, changed=self._context.changed_logs,
            misled=self._misled, answers=self._context.answers,
        )  # fmt: skip
        self._misled.session_begins()
        self._context.answers.session_begins()
        self._partitions.follow(spec)
        self._failures.begins()
        self._report.set("running", "copying")
        self._report.copies(records_reason(self._spec, clients))
        self._change.session_reads()
        self._report.memory(clients.memory)
        self._report.long_line(clients.target_seconds, bbr=offers_bbr())
        self._checks.session_begins()
        session = clients.session
        while not self._stopping:
            while self._commands:
                self._commands.popleft()()
            if self._leaves(clients):
                break
            session.step()
            if clients.record_by_record and self._retry_range.is_past(self._states()):
                session.unit.commit()
                self._retry_range.clear()
                return  # the next session runs at full speed
            bounded = self._bounded_copy
            if bounded is not None and bounded.over(self._states()):
                bounded.finish(session, self._states())
                self._stopping = True
                return
            self.active_at = self._clock.monotonic()
            self._checks.run_due(self.active_at, clients, self._partitions_now())
        session.unit.commit()
        self._clients = self._change.left(clients, self._states(), ends=self._stopping)

    def _leaves(self, clients: SessionClients) -> bool:
        """Whether other clients suit the new work, the new login, the engine or the source's answers."""
        outdated = clients.opened_with.outdated() or self._unseen.is_over(self._spec, clients.spec)
        if not outdated:
            self._context.problems.opened()
        if self._reopen or (outdated and self._others_are_ready()):
            return True
        helped = self._context.answers.change or (MISLED if self._misled.another_helps else "")
        if helped:
            self._report.log("warning", helped)
        return bool(helped)

    def _waits_no_longer(self) -> bool:
        """Asked while the lane's id is not free."""
        if not self._stopping:
            self._held_id.waits()
        return self._stopping

    def _held_by(self, error: ReplicatorError) -> None:
        if self._partitions is not None and isinstance(error, PartitionsRefusedError):
            self._partitions.set_aside(error)
        self._failures.held(error)

    def _others_are_ready(self) -> bool:
        """Whether the next session's clients are at hand; a bounded copy opens them after it closed its own."""
        if self._bounded_copy is not None:
            return self._change.take_turn()
        return self._change.ready(self._unseen.spec_now(self._spec))

    def _open(self, spec: LaneSpec) -> SessionClients:
        one_by_one = bool(self._retry_range)
        return clients_for(spec, self._context, self._bounded_copy, record_by_record=one_by_one)

    def _apply(self, spec: LaneSpec) -> None:
        outdated = handed_over(self._spec, spec)
        self._spec = spec
        self._context.throttle.set(spec.throttle, now=self._clock.monotonic())
        clients = self._clients
        if clients is None or outdated or not clients.serves(spec):
            self._reopen = True
        else:
            self._partitions_now().follow(replace(spec, settings=clients.spec.settings))

    def _partitions_now(self) -> LanePartitions:
        if self._partitions is None:
            raise RuntimeError("a lane has no partitions before its take-over")
        return self._partitions

    def _states(self) -> list[PartitionState]:
        return [] if self._partitions is None else list(self._partitions.states.values())

    # Recovery.

    def _sets_aside(self, error: ReplicatorError) -> bool:
        """Whether partitions made the session fail; the next one goes on without them."""
        refused = self._writes.explanation(error)
        if refused is not None:
            self._counters.aborts += 1
            self._partitions_now().set_aside(refused)
            self._report.publish()
        return refused is not None

    def _pause(self, seconds: float) -> None:
        self._wake.clear()
        if not self._stopping:
            wait_for_login(self._logins, self._tried, self._wake, seconds=seconds)

    def _close(self) -> None:
        clients, self._clients = self._clients, None
        if clients is not None:
            self._change.give_up()
            close_clients(clients)
