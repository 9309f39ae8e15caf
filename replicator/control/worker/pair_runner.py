"""One worker's part in one ordered pair of clusters: joins, takes lanes, follows the control topic.

Its own threads, its own clients: a pair whose clusters are down waits here and retries, and no
other pair notices. What its lanes should do is computed anew (``lane_specs``) from the plan, the
control topic and the lanes it owns whenever one of these changes, and only differences are sent.
"""

import queue
import random
import threading
from collections.abc import Callable, Iterable

import structlog

from replicator.backoff import Backoff
from replicator.clock import Clock
from replicator.control.backfill.spark_process import SparkProcess
from replicator.control.controller.bootstrap import bootstrap_pair
from replicator.control.lanes.lane_specs import LaneSpecs
from replicator.control.records.worker_records import MemoryPart
from replicator.control.store.followers import ControlFollowers, ControlSubscription
from replicator.control.store.state import EMPTY
from replicator.control.store.worker_record import (
    WorkerRecordWriter,
    told_at_once,
    with_canaries,
)
from replicator.control.worker.backfill_supervisor import BackfillSupervisor
from replicator.control.worker.lane_confirmation import LaneConfirmation
from replicator.control.worker.owned_controller import OwnedController
from replicator.control.worker.owned_lanes import OwnedLanes
from replicator.control.worker.pair_problems import PairProblems
from replicator.control.worker.pair_view import PairView, WorkerIdentity
from replicator.control.worker.rate_meter import RateMeter
from replicator.dataplane.process.membership import Lanes, Membership
from replicator.dataplane.process.process_pool import LanePool
from replicator.dataplane.transport.messages import LaneStopped
from replicator.errors import FencedError, ReplicatorError
from replicator.formats.lane_stats import LaneStats
from replicator.identifiers import checkpoints_topic, membership_group, worker_client_id
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.topology.plan import PairPlan, Plan

log = structlog.get_logger("control")

DRAIN_SECONDS = 5.0
"""How long a rebalance waits for lanes to commit; the group's session is a little longer."""

RECORD_SECONDS = 5.0
RETRY = Backoff(0.5, 10.0)
TAIL_SECONDS, TURN_SECONDS = 1.0, 3.0
"""How long to wait for something to happen, and how often a turn is taken when nothing does: what ends
in silence, as a controller may, is noticed then."""


class PairRunner(threading.Thread):
    """Runs until stopped; every public method may be called from any thread."""

    def __init__(
        self,
        *,
        plan: Plan,
        pair: PairPlan,
        pool: LanePool,
        followers: ControlFollowers,
        identity: WorkerIdentity,
        clock: Clock,
        beat: Callable[[str], None],
        seeder: SparkProcess | None = None,
    ) -> None:
        """``seeder`` copies history where the controller asks for it."""
        super().__init__(name=f"pair-{pair.id}", daemon=True)
        self._plan = plan
        self._pair = pair
        self._pool = pool
        self._followers = followers
        self._identity = identity
        self._clock = clock
        self._beat = beat
        self._client_id = worker_client_id(plan.topology, identity.id)
        self._events: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._stopping = threading.Event()
        self._lanes = OwnedLanes()
        self._joined = False
        self._control = EMPTY
        self._problems = PairProblems(
            pair.target.alias, group=membership_group(plan.topology, pair.source.alias)
        )
        self._confirmation = LaneConfirmation(pair.id, self._lanes, self._problems, clock=clock)
        self._following_failed = ""
        self._membership: Membership | None = None
        self._controller = OwnedController(followers, clock=clock, client_id=self._client_id)
        self._unrecorded = ""
        self._meter = RateMeter()
        self._orders = LaneSpecs()
        self._spark = (
            None
            if seeder is None
            else BackfillSupervisor(seeder, clock=clock, problems=self._problems)
        )

    # What others ask.

    @property
    def pair(self) -> PairPlan:
        """The pair as the plan has it now."""
        return self._pair

    def view(self) -> PairView:
        """A frozen picture of the pair."""
        controller = self._controller.view()
        return PairView(
            pair=self._pair.id,
            joined=self._joined,
            owned=tuple(sorted(self._lanes.owned)),
            running=self._lanes.running,
            control=self._control,
            problems=(*self._problems.all(), *controller.problems),
            task_problems=controller.task_problems,
            figures=controller.figures,
        )

    def replan(self, plan: Plan, pair: PairPlan) -> None:
        """Goes on with an edited plan; only lanes whose orders differ notice."""

        def apply() -> None:
            same = plan.hash == self._plan.hash and pair.same_flows(self._pair)
            self._plan, self._pair = plan, pair
            if same:
                return  # only an epoch or a revision went on: the controller may go on
            self._controller.stop()  # the next turn starts one with the new plan

        self._events.put(apply)

    def lane_stopped(self, event: LaneStopped) -> None:
        """A lane ended, asked for or not."""
        self._events.put(lambda: self._forget(event))

    def stop(self) -> None:
        """Asks for a drain; ``join`` waits for it."""
        self._stopping.set()
        self._events.put(None)

    # The thread.

    def run(self) -> None:
        """Bootstraps, joins and reconciles until stopped; survives any cluster's absence."""
        failures = 0
        while not self._stopping.is_set():
            try:
                self._serve()
                failures = 0
            except ReplicatorError as error:
                self._problems.note(error)
                log.warning("pair waits for its clusters", flow=self._pair.id,
                            code=error.code, error=error.message)  # fmt: skip
            except Exception as error:
                self._problems.note(ReplicatorError(f"unexpected: {error!r}", subject="flow"))
                log.exception("pair failed unexpectedly", flow=self._pair.id)
            failures += 1
            self._wait(RETRY.seconds(failures, random.random))

    def _wait(self, seconds: float) -> None:
        limit = self._clock.monotonic() + seconds
        while not self._stopping.is_set() and self._clock.monotonic() < limit:
            self._beat(f"pair {self._pair.id}")
            self._stopping.wait(min(1.0, seconds))

    def _serve(self) -> None:
        records = WorkerRecordWriter(
            self._plan, self._pair, self._identity, clock=self._clock, client_id=self._client_id
        )
        follower: ControlSubscription | None = None
        try:
            self._make_ready()
            self._join()  # the group answers while the control topic is read
            follower = self._followers.subscribe(
                self._plan.topology,
                self._pair.target,
                on_news=lambda: self._events.put(None),
                on_trouble=self._note_follower,
            )
            follower.begin()
            self._problems.clear_all()
            self._reconcile_until_stopped(follower, records)
        finally:
            self._leave(records)
            if follower is not None:
                follower.close()

    def _make_ready(self) -> None:
        # Not kept: each client that stays open costs threads that wake up every second.
        with (
            ClusterAdmin(self._pair.source, client_id=self._client_id) as source_admin,
            ClusterAdmin(self._pair.target, client_id=self._client_id) as target_admin,
        ):
            bootstrap_pair(
                plan=self._plan,
                pair=self._pair,
                source_admin=source_admin,
                target_admin=target_admin,
                clock=self._clock,
                client_id=self._client_id,
            )

    def _join(self) -> None:
        source, topology = self._pair.source.alias, self._plan.topology
        self._membership = Membership(
            cluster=self._pair.target,
            group=membership_group(topology, source),
            topic=checkpoints_topic(topology, source),
            client_id=self._client_id,
            instance_id=self._identity.instance_id,
            on_assigned=self._assigned,
            on_revoked=self._revoked,
            on_problem=self._problems.note_membership,
        )
        self._membership.start()

    def _reconcile_until_stopped(
        self, follower: ControlSubscription, records: WorkerRecordWriter
    ) -> None:
        record_at = turn_at = 0.0
        recorded = told_at_once(())
        while not self._stopping.is_set():
            self._beat(f"pair {self._pair.id}")
            happened = self._drain_events()
            if self._membership is not None:
                self._membership.require_alive()
            self._pool.replace_silent()
            now = self._clock.monotonic()
            if happened or now >= turn_at or self._lanes.unconfirmed:
                turn_at = now + TURN_SECONDS
                self._reconcile(follower)
            news = told_at_once(self._stats())
            if now >= record_at or news != recorded:
                recorded = news
                record_at = now + RECORD_SECONDS
                self._record(records)

    def _drain_events(self) -> bool:
        """Waits briefly for something to happen, then takes everything that did; whether any did."""
        happened = False
        try:
            event = self._events.get(timeout=TAIL_SECONDS)
            while True:
                happened = True
                if event is not None:
                    event()
                event = self._events.get_nowait()
        except queue.Empty:
            return happened

    def _note_follower(self, error: ReplicatorError | None) -> None:
        """In the follower's thread: the control topic cannot be followed, or can be again."""
        if error is not None:
            self._following_failed = self._problems.note(error)
        else:
            self._problems.clear(self._following_failed)

    # Ownership.

    def _assigned(self, lanes: Lanes) -> None:
        self._joined = True
        self._lanes.add(lanes)
        self._pool.expect(len(lanes))
        log.info("lanes assigned", flow=self._pair.id, lanes=sorted(lanes))
        self._events.put(None)

    def _revoked(self, lanes: Lanes, lost: bool) -> None:
        """In the membership thread: give the lanes up before the group moves them."""
        running = self._lanes.remove(lanes)
        log.info("lanes lost" if lost else "lanes given up", flow=self._pair.id,
                 lanes=sorted(lanes))  # fmt: skip
        self._stop_lanes(running, 0.5 if lost else DRAIN_SECONDS)
        self._events.put(None)

    def _stop_lanes(self, lanes: Iterable[int], seconds: float) -> None:
        keys = [(str(self._pair.id), lane) for lane in lanes]
        if late := self._pool.stop(keys, timeout_seconds=seconds):
            log.warning("lanes did not drain in time, the next owner fences them",
                        flow=self._pair.id, lanes=[lane for _, lane in late])  # fmt: skip

    def _forget(self, event: LaneStopped) -> None:
        self._lanes.ended(event.lane, fenced=event.fenced)
        if event.reason != "stopped":
            log.warning("lane ended", flow=self._pair.id, lane=event.lane, reason=event.reason,
                        fenced=event.fenced)  # fmt: skip

    # Reconciling.

    def _reconcile(self, follower: ControlSubscription) -> None:
        """Sends every lane the difference between what it does and what it should do."""
        self._control = control = follower.state
        owned = self._lanes.owned - self._confirmation.still_unconfirmed(self._membership)
        owner = 0 in self._lanes.owned
        self._controller.supervise(self._plan, self._pair, control, follower, owner=owner)
        if self._spark is not None:
            self._spark.supervise(self._plan, self._pair, control, owner=owner)
        wanted = self._orders.of(self._plan, self._pair, control, owned, at=self._clock.now())
        gone = self._lanes.send(wanted, self._pool.start)
        if gone:
            self._stop_lanes(gone, DRAIN_SECONDS)

    # Telling.

    def _record(self, records: WorkerRecordWriter) -> None:
        owned = tuple(sorted(self._lanes.owned))
        try:
            rates = self._meter.rates(self._stats(), now=self._clock.monotonic())
            memory = MemoryPart(
                limit_bytes=self._identity.memory_bytes,
                records_bytes=self._pool.records_bytes, lane_bytes=self._pool.lane_bytes,
            )  # fmt: skip
            rates = with_canaries(rates, self.view().figures)
            records.write(lanes=owned, rates=rates, memory=memory, processes=self._pool.processes)
        except FencedError:
            raise
        except ReplicatorError as error:
            self._unrecorded = self._problems.note(error)
        else:
            if self._unrecorded:  # or a cluster that came back would be missed for ever
                self._problems.clear(self._unrecorded)
                self._unrecorded = ""

    def _stats(self) -> list[LaneStats]:
        return [stats for stats in self._pool.stats() if stats.pair == self._pair.id]

    def _leave(self, records: WorkerRecordWriter) -> None:
        """Drains the lanes by leaving the group, then takes this worker's record back."""
        self._controller.ask_to_stop()  # it ends while lanes commit
        if self._spark is not None:
            self._spark.release()
        self._stop_lanes(self._lanes.end_all(), DRAIN_SECONDS)
        self._controller.stop()
        membership, self._membership = self._membership, None
        if membership is not None:
            membership.stop(DRAIN_SECONDS)
        self._lanes.clear()
        self._joined = False
        if self._spark is not None:
            self._spark.close()
        records.close()
