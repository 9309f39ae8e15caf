"""Lanes on virtual time: the product's own thread, run as a function, between two clusters in memory.

One seed is one schedule: what applications write, what gets lost or comes late, when a lane dies, and when
a lane sleeps while another takes over. ``simulated_schedule.py`` runs one.
"""

import contextlib
import random
from collections import Counter
from dataclasses import dataclass, replace

import session_lab
from fake_kafka import Entry, Transaction
from simulated_consumer import SimulatedConsumer, SourceAdmin
from simulated_kafka import SimulatedCluster, SimulatedProducer

from replicator.dataplane.lane.lane import Lane
from replicator.dataplane.session.session_clients import LaneClients
from replicator.dataplane.session.session_factory import SessionParts, wire_session
from replicator.dataplane.takeover.target_looks import LastCopy, SeenTarget
from replicator.dataplane.transport.messages import LaneStopped, LogLine
from replicator.dataplane.transport.spec import LaneSpec, PartitionWork
from replicator.formats.checkpoint import Checkpoint, decode_checkpoints
from replicator.identifiers import HOPS_HEADER
from replicator.kafka.clients.opened_with import OpenedWith
from replicator.kafka.logs.coordinator_watch import CoordinatorWatch
from replicator.testing import ManualClock
from replicator.topology.plan import ClusterPlan
from replicator.wire.requests.known_leaders import KnownLeaders

TOPIC, PARTITIONS = "orders", 2
LIMIT = session_lab.TARGET_LIMIT
STEPS = 60
"""Moments of one schedule in which something can happen; then the weather clears."""

PATIENCE = 400
"""Moments within which a lane must have caught up once nothing happens any more."""


class Crash(BaseException):
    """The process of a lane is killed."""


@dataclass(frozen=True, slots=True)
class Chances:
    """How often what happens, of a hundred moments."""

    writes: int = 30
    transactions: int = 12
    crash: int = 4
    sleep: int = 4
    late: int = 10
    trouble: int = 35
    drops: int = 10
    cuts: int = 0
    losses: int = 0
    past: int = 0


class World:
    """Both clusters, those who write, and the lanes, one running at a time and others asleep."""

    writer_id: str | None = None
    """Under what id a lane ends transactions whose markers were lost, where logs are cut."""

    refuses = True
    """Whether applications write records that the target refuses."""

    def __init__(self, seed: int, *, delivery: str = "exactly-once", chances: Chances) -> None:
        self.random = random.Random(seed)
        self.clock = ManualClock()
        self.chances = chances
        self.source = SimulatedCluster()
        self.target = SimulatedCluster(version=1 + (seed % 5 == 0))
        self.source.create_topic(TOPIC, partitions=PARTITIONS)
        self.target.create_topic(TOPIC, partitions=PARTITIONS, limit=LIMIT)
        self.target.create_topic(session_lab.CHECKPOINTS)
        self.target.create_topic(session_lab.QUARANTINE)
        self.spec = LaneSpec(
            topology="lab", link="link", source=ClusterPlan("east", ("east:9092",)),
            target=ClusterPlan("west", ("west:9092",)), lane=0, layout_epoch=1,
            settings=replace(session_lab.SETTINGS, delivery=delivery),
            work=tuple(PartitionWork(TOPIC, n, TOPIC, "") for n in range(PARTITIONS)),
        )  # fmt: skip
        self.broken: list[str] = []
        self.moments = 0
        self.calm = False
        self.lanes: list[Lane] = []
        self._numbers = 0
        self._running: list[int] = []
        self._fenced: set[int] = set()
        self._written = 0
        self._open: tuple[Transaction, set[tuple[str, int]]] | None = None
        self._judged = -1

    # -- what clients meet ---------------------------------------------------------------------

    def moment(self, what: str) -> None:
        self.moments += 1
        self.judge()
        if self.broken:
            raise Crash
        if self.calm:
            self._end_when_done()
            return
        if self.moments > STEPS:
            raise Crash
        if what == "consume":
            self._others_act()
        if self._happens(self.chances.late):
            self.target.deliver_late()
        if self._happens(self.chances.crash):
            raise Crash
        if len(self.lanes) < 3 and self._happens(self.chances.sleep):
            # The process stops, as under SIGSTOP; another one takes over, and then it wakes up.
            self.run_lane()

    def fate(self):
        if self.calm or not self._happens(self.chances.trouble):
            return "done"
        return self.random.choice(("resent", "resent", "unanswered", "lost"))

    def drops_first_write(self) -> bool:
        return not self.calm and self._happens(self.chances.drops)

    def wait(self, seconds: float) -> None:
        self.clock.advance(seconds)

    def took_over(self, lane: int) -> None:
        if lane in self._fenced:
            self.broken.append("a lane that was told that it was replaced takes over again")

    def was_fenced(self, lane: int) -> None:
        self._fenced.add(lane)

    def _happens(self, chance: int) -> bool:
        return self.random.randrange(100) < chance

    # -- those who write -----------------------------------------------------------------------

    def _others_act(self) -> None:
        self.clock.advance(self.random.choice((0.01, 0.1, 0.3)))
        if self._happens(self.chances.writes):
            for _ in range(self.random.randint(1, 4)):
                self._write(None)
        if self._open is None and self._happens(self.chances.transactions):
            self._open = (Transaction(), set())
            for _ in range(self.random.randint(1, 3)):
                self._write(self._open[0])
        elif self._open is not None and self._happens(40):
            self.end_transaction(self.random.choice(("committed", "aborted")))

    def _write(
        self, transaction: Transaction | None, partition: int = -1, *, plain: bool = False
    ) -> None:
        partition = self.random.randrange(PARTITIONS) if partition < 0 else partition
        self._written += 1
        value = b"%d" % self._written
        headers = []
        kind = -1 if plain else self.random.randrange(12)
        if kind == 0 and self.refuses:
            value = value.ljust(LIMIT + 1, b".")
        elif kind == 1:  # an application forwarded the headers of a copy
            headers = [(HOPS_HEADER, b"west/other/0/7")]
        elif kind == 2:  # came from the target
            headers = [(HOPS_HEADER, b"west/%s/%d/7" % (TOPIC.encode(), partition))]
        record = {"key": b"k", "value": value, "timestamp": 1000, "headers": headers}
        self.source.append(TOPIC, partition, Entry(record, transaction))
        if transaction is not None:
            self._open[1].add((TOPIC, partition))

    def end_transaction(self, state: str) -> None:
        if self._open is not None:
            (transaction, places), self._open = self._open, None
            transaction.state = state
            for place in sorted(places):
                self.source.mark(*place, transaction)

    # -- lanes ---------------------------------------------------------------------------------

    def grow_calm(self) -> None:
        """From now on nothing happens any more, but what is under way."""
        self.calm = True
        self.end_transaction("committed")
        self.target.deliver_late()

    def run_lane(self) -> None:
        """Runs one lane until it ends or its process is killed."""
        lane = Lane(
            self.spec, post=self._on_said, may_start=lambda *_: True,
            clock=self.clock,
        )  # fmt: skip
        self.lanes.append(lane)
        self._numbers += 1
        self._running.append(self._numbers)
        with contextlib.suppress(Crash):
            lane.run()
        self._running.pop()

    def new_consumer(self):
        """What the next session of a lane reads with."""
        return SimulatedConsumer(self.source, self)

    def open_clients(self, spec, context, *, record_by_record, bounded_copy=None):
        parts = SessionParts.of(spec, context, record_by_record=record_by_record)
        watch = CoordinatorWatch(metadata=parts.metadata, monotonic=self.clock.monotonic)
        parts = replace(parts, coordinator=watch)
        transactional = spec.settings.delivery == "exactly-once"
        consumer = self.new_consumer()
        producer = SimulatedProducer(
            self.target, self, watch=watch, lane=self._running[-1],
            transactional_id="lane-0" if transactional else None,
            on_delivery=parts.deliveries.report,
        )  # fmt: skip
        progress = session_lab.NobodyWatchesLag()
        session = wire_session(
            spec, context, parts, consumer=consumer, producer=producer, progress=progress
        )
        return LaneClients(
            spec=spec, consumer=consumer, producer=producer, source_admin=SourceAdmin(self.source, PARTITIONS, shown=self.shown),
            session=session, progress=progress, clock=self.clock, record_by_record=record_by_record,
            opened_with=OpenedWith(), changed=context.changed_logs, writer_id=self.writer_id,
        )  # fmt: skip

    def stored(self) -> dict[bytes, bytes]:
        """The last committed value of every key of the checkpoints."""
        self.moment("read")
        return self.newest()

    def newest(self) -> dict[bytes, bytes]:
        found = {
            each["key"]: each["value"] for each in self.target.records(session_lab.CHECKPOINTS)
        }
        return {key: value for key, value in found.items() if value is not None}

    def read_targets(self, _target, places, *, client_id):
        del client_id
        ends = {place: len(self.target.logs[place]) for place in places}
        return {place: SeenTarget("", 0, end, 0 if end else -1) for place, end in ends.items()}

    def find_last_copies(self, _target, suspects, origins, *, source_alias, client_id):
        del origins, client_id
        found = {}
        for place in suspects:
            hops = [
                value.decode().split(",")[-1].split("/")
                for each in self.target.records(*place)
                for name, value in each["headers"][-1:]
                if name == HOPS_HEADER
            ]
            found[place] = LastCopy(
                max((int(hop[3]) for hop in hops if hop[0] == source_alias), default=None)
            )
        return found

    def find_undecided_copies(self, _target, wanted, origins, *, source_alias, client_id):
        del wanted, origins, source_alias, client_id
        return {}

    def known_leaders(self, _cluster, _places, *, client_id):
        """No broker knows more than who was asked."""
        del client_id
        return KnownLeaders()

    def newest_end(self, place):
        """Where a log of the source ends by the word of its newest leader."""
        return self.source.shown(place).stable

    def shown(self, cluster, place):
        """A log as who is asked shows it."""
        return cluster.shown(place)

    def _on_said(self, said) -> None:
        if isinstance(said, LaneStopped) and said.fenced and self.calm:
            self.broken.append("the only lane left says that it was replaced")
        if isinstance(said, LogLine) and said.event == "lane failed unexpectedly":
            self.broken.append(f"unexpected: {said.fields['error']}")
            raise Crash

    # -- what must hold ------------------------------------------------------------------------

    def expected(self, partition: int) -> list[bytes]:
        """What belongs on the target of what the source shows, in order."""
        looped = (b"west/%s/%d/7" % (TOPIC.encode(), partition),)
        return [
            each["value"]
            for each in self.source.records(TOPIC, partition)
            if len(each["value"]) <= LIMIT
            and not any(v in looped for n, v in each["headers"] if n == HOPS_HEADER)
        ]

    def refused(self, partition: int) -> list[bytes]:
        looped = b"west/%s/%d/7" % (TOPIC.encode(), partition)
        return [
            each["value"]
            for each in self.source.records(TOPIC, partition)
            if len(each["value"]) > LIMIT and (HOPS_HEADER, looped) not in each["headers"]
        ]

    def judge(self) -> None:
        """After every end of a transaction: the target holds a beginning of what belongs there, once."""
        if self._judged == self.target.ended:
            return
        self._judged = self.target.ended
        if self.spec.settings.delivery != "exactly-once":
            return
        checkpoints = decode_checkpoints(self.newest())
        for partition in range(PARTITIONS):
            self._judge_partition(partition, checkpoints.get((TOPIC, partition)))

    def _judge_partition(self, partition: int, checkpoint: Checkpoint | None) -> None:
        found = [each["value"] for each in self.target.records(TOPIC, partition)]
        wanted = self.expected(partition)
        if found != wanted[: len(found)]:
            self._tell(partition, found, wanted)
        if checkpoint is not None and self.target.stable_end(TOPIC, partition) == len(
            self.target.logs[TOPIC, partition]
        ):
            self._compare(partition, checkpoint.offset, found)

    def _compare(self, partition: int, offset: int, found: list[bytes]) -> None:
        """A checkpoint counts exactly what is there: a claim about two logs."""
        before = self.source.logs[TOPIC, partition]
        wanted = self.expected(partition)
        counted = sum(
            1
            for each in before[:offset]
            if each.record is not None
            and (each.transaction is None or each.transaction.state == "committed")
            and each.record["value"] in wanted
        )
        if counted != len(found):
            self.broken.append(
                f"checkpoint of {partition} counts {counted} records, the target has {len(found)}"
            )

    def _tell(self, partition: int, found: list[bytes], wanted: list[bytes]) -> None:
        twice = [value for value, count in Counter(found).items() if count > 1]
        strange = [value for value in found if value not in wanted]
        kind = "duplicate" if twice else "phantom" if strange else "lost or reordered"
        self.broken.append(f"{kind} in {partition}: {found[-6:]} of {wanted[-6:]}")

    def judge_the_end(self) -> None:
        if self.broken:
            return
        held = Counter(each["value"] for each in self.target.records(session_lab.QUARANTINE))
        for partition in range(PARTITIONS):
            self._judge_end_of(partition, held)

    def _judge_end_of(self, partition: int, held: Counter[bytes]) -> None:
        found = [each["value"] for each in self.target.records(TOPIC, partition)]
        wanted, refused = self.expected(partition), self.refused(partition)
        if self.spec.settings.delivery == "exactly-once":
            if found != wanted:
                self._tell(partition, found, wanted)
            if any(held[value] != 1 for value in refused):
                self.broken.append(f"quarantine of {partition}: not each refused record once")
        else:
            first = list(dict.fromkeys(found))
            if [value for value in first if value in wanted] != wanted or len(first) != len(wanted):
                self.broken.append(f"lost or reordered in {partition}: {first} of {wanted}")
            if any(not held[value] for value in refused):
                self.broken.append(f"quarantine of {partition}: a refused record is missing")

    def _end_when_done(self) -> None:
        if self.moments > STEPS + PATIENCE:
            self.broken.append("stands still: the last lane does not catch up")
            raise Crash
        running = self.lanes[-1]
        states = running._states()
        caught_up = states and all(
            state.committed >= self.source.stable_end(*state.key) for state in states
        )
        if caught_up:
            running.stop(1)
