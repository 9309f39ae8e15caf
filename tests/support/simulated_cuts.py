"""Lanes on virtual time between clusters that lose what they had acknowledged.

On top of ``simulated_lane.py`` come elections, clean and unclean, of both clusters' leaders, and target topics
that are deleted and created again. A lane may then stop a partition, give a gap up or copy something again,
so what must hold is said anew, for each partition that lost something.
"""

from collections import defaultdict
from dataclasses import replace

from fake_kafka import Entry, Transaction, _message
from simulated_cuts_judge import OTHERS, JudgedWorld
from simulated_lane import PARTITIONS, STEPS, TOPIC, Chances, World
from simulated_schedule import run_schedule

from replicator.dataplane.lane import periodic_checks
from replicator.dataplane.takeover import own_transaction
from replicator.dataplane.takeover.target_looks import LastCopy, SeenTarget, _source_offset
from replicator.dataplane.transport.messages import LogLine, LostRange
from replicator.formats.checkpoint import decode_checkpoints
from replicator.policy.copies.provenance import hop_prefix
from replicator.wire.requests.known_leaders import KnownLeader, KnownLeaders

CHECK_SECONDS = 1.0
"""How often lanes look at their targets here: schedules are short."""

NOTICED_SECONDS = 3 * CHECK_SECONDS
TOLD = "target lost records, they are copied again"
SHORT = (0, 0, 1, 1, 2, 3, 5, 8)
"""How many offsets an election costs; none where it is clean."""

RISKS = {
    "aborted returns": "the source loses the marker of an aborted transaction, and commits its records later",
    "undecided in a unit": "the target loses the marker of an aborted transaction behind the last record of the next one",
}
"""What may happen in a schedule only where it is asked for: what must hold then does not, see the test."""


class CutWorld(JudgedWorld):
    """A world whose logs get cut.

    Attributes:
        risks: those of ``RISKS`` that may happen.
        splits: whether the target may keep records whose marker it loses.
    """

    risks: frozenset[str] = frozenset()

    def __init__(self, seed: int, *, delivery: str = "exactly-once", chances: Chances) -> None:
        super().__init__(seed, delivery=delivery, chances=chances)
        policy = self.random.choice(("stop", "report"))
        settings = replace(self.spec.settings, on_truncation=policy)
        self.spec = replace(self.spec, settings=settings)
        self.operator_accepts = self.random.random() < 0.6
        self.transactional = delivery == "exactly-once"
        self.writer_id = "lane-0" if self.transactional else None
        self.splits = self.transactional and self.random.random() < 0.5
        self.source.revives = "aborted returns" in self.risks
        self._consumers: list = []
        self._accepted: defaultdict[int, int] = defaultdict(int)
        self._strikes = int(chances.cuts > 0) + 2 * int(chances.losses > 0 and self.transactional)
        self._quiet_until = 0.0

    # -- what happens --------------------------------------------------------------------------

    def moment(self, what: str) -> None:
        if not self.calm and self.moments <= STEPS:
            if self._happens(self.chances.cuts):
                self._cut_source()
            if self.transactional and self._happens(self.chances.losses):
                self._lose_on_target()
            if self._happens(20):
                self._operator_acts()
        super().moment(what)

    def run_lane(self) -> None:
        # Without transactions nothing is promised of what a lane wrote behind a loss before it looked.
        between = not self._running and not self.calm
        if not self.transactional and between and self._happens(10 * self.chances.losses):
            self._lose_on_target()
        super().run_lane()

    def grow_calm(self) -> None:
        super().grow_calm()
        self._end_reopened()

    def _cut_source(self) -> None:
        partition = self.random.randrange(PARTITIONS)
        place, damage = (TOPIC, partition), self.damage[partition]
        log = self.source.logs[place]
        end = max(0, len(log) - self.random.choice(SHORT))
        if self._happens(50):
            for consumer in self._consumers:
                if not consumer.closed:
                    consumer.fetch_ahead()
        damage.orders.append(self.expected(partition))
        damage.cuts += end < len(log)
        before = {id(each.transaction) for each in log if each.transaction}
        self.source.elect(*place, end)
        damage.reopened.update(
            each.record["value"]
            for each in log
            if each.transaction and each.record and id(each.transaction) not in before
        )
        if self._happens(50):
            for _ in range(self.random.randint(1, 9)):
                self._write(None)

    def _lose_on_target(self) -> None:
        places = [(TOPIC, partition) for partition in range(PARTITIONS)]
        recreated = self._happens(30)
        if not recreated:
            places = [self.random.choice(places)]
        stored = decode_checkpoints(self.newest())
        for place in places:
            log, damage = self.target.logs[place], self.damage[place[1]]
            counted = stored[place].offset if place in stored else 0
            end = 0 if recreated else self._kept(place)
            lost = [_copied(place, each) for each in log[end:]]
            damage.missed |= any(each is not None and each < counted for each in lost)
            damage.losses += recreated or end < len(log)
            if not recreated:
                # What is left without its marker is lost once more where its writer's next transaction is aborted.
                damage.losses += _whole(log, end) < end
                self.target.elect(*place, end)
        if recreated:
            self.target.recreate_topic(TOPIC)
        if self._happens(60):
            for _ in range(self.random.randint(1, 12)):
                place = self.random.choice(places)
                record = {"key": b"k", "value": OTHERS, "timestamp": 1000, "headers": []}
                self.target.append(*place, Entry(record))
                self.damage[place[1]].others = True

    def _kept(self, place: tuple[str, int]) -> int:
        """Where the target's log ends after its next election."""
        log = self.target.logs[place]
        end = max(0, len(log) - self.random.choice(SHORT))
        coordinators = self.target.coordinators.values()
        writing = any(each.open and place in each.open.partitions for each in coordinators)
        free = not writing or "undecided in a unit" in self.risks
        return end if self.splits and free else _whole(log, end)

    def _end_reopened(self) -> None:
        """Somebody ends what would stay open in the source for ever."""
        for place in self.source.reopened():
            self.source.mark(*place, Transaction(self.random.choice(("committed", "aborted"))))

    def _operator_acts(self) -> None:
        """Accepts the gaps of partitions that stopped, where this operator does that."""
        if not self.operator_accepts or not any(each.stopped for each in self.damage):
            return
        for partition, damage in enumerate(self.damage):
            if damage.stopped:
                damage.stopped = False
                self._accepted[partition] += 1
        work = tuple(
            replace(each, accept_gap=f"token-{self._accepted[each.partition]}")
            if self._accepted[each.partition]
            else each
            for each in self.spec.work
        )
        self.spec = replace(self.spec, work=work)
        self.lanes[-1].update(self.spec)

    # -- what a lane asks ----------------------------------------------------------------------

    def open_clients(self, spec, context, *, record_by_record, bounded_copy=None):
        clients = super().open_clients(spec, context, record_by_record=record_by_record)
        self._consumers.append(clients.consumer)
        return clients

    def shown(self, cluster, place):
        """By the leader, or by a broker that has not heard of the last election."""
        past = self._past(cluster, place)
        if past is not None and self._happens(self.chances.past):
            return past
        return cluster.shown(place)

    def _past(self, cluster, place):
        cut_off = self.chances.past > 0 and not self.calm
        return cluster.past.get(place) if cut_off else None

    def known_leaders(self, cluster, places, *, client_id):
        """Every broker is asked, one that knows nothing new among them."""
        del client_id
        model = self.source if cluster.alias == self.spec.source.alias else self.target
        found = KnownLeaders()
        for place in places:
            logs = [model.shown(place), *filter(None, [self._past(model, place)])]
            # The source tells no ids of its topics.
            ids = ["" if model is self.source else log.topic_id for log in logs]
            epochs = [log.epoch for log in logs]
            found.leaders[place] = set(map(KnownLeader, ids, epochs))
        return found

    def read_targets(self, _target, places, *, client_id):
        del client_id
        shown = {place: self.shown(self.target, place) for place in places}
        return {
            place: SeenTarget(log.topic_id, 0, log.end, log.epoch) for place, log in shown.items()
        }

    def find_last_copies(self, _target, suspects, origins, *, source_alias, client_id):
        del client_id, source_alias
        found = {}
        for place, part in suspects.items():
            log, stable = self.target.logs[place], self.target.stable_end(*place)
            stable = max(part.start, min(stable, part.end))
            committed = [
                each
                for each in log[part.start : stable]
                if each.transaction is None or each.transaction.state == "committed"
            ]
            settled = max(_copies(origins[place], committed), default=None)
            found[place] = LastCopy(settled, never_deleted=settled is None)
            last = max(_copies(origins[place], log[stable : part.end]), default=-1)
            if last > (settled or -1):
                found[place] = LastCopy(last, undecided=True)
        return found

    def find_undecided_copies(self, _target, wanted, origins, *, source_alias, client_id):
        del client_id, source_alias
        found = {}
        for place, part in wanted.items():
            log, stable = self.target.logs[place], self.target.stable_end(*place)
            copies = _copies(origins[place], log[max(part.start, stable) : part.end])
            if copies:
                found[place] = LastCopy(max(copies), undecided=True)
        return found

    def _on_said(self, said) -> None:
        super()._on_said(said)
        if isinstance(said, LostRange):
            self.damage[said.partition].gaps.append((said.lost_to, said.detail))
        elif isinstance(said, LogLine) and said.event in {TOLD, "partition stopped"}:
            damage = self.damage[int(said.fields["partition"])]
            if said.event == TOLD:
                damage.told[self._running[-1]] += 1
            else:
                damage.stopped = True

    # -- the end -------------------------------------------------------------------------------

    def _end_when_done(self) -> None:
        if self.moments > 900:
            self.broken.append("stands still: the last lane does not catch up")
            super()._end_when_done()
        self._operator_acts()
        states = self.lanes[-1]._states()
        if not states or not all(self._is_done(state) for state in states):
            return
        if self._strikes:
            self._strike()
        elif self.clock.monotonic() >= self._quiet_until:
            self.lanes[-1].stop(1)

    def _strike(self) -> None:
        """The lane is at rest, and something happens once more, with or without traffic after it."""
        if self._strikes & 1:
            self._strikes -= 1
            self._cut_source()
        else:
            self._strikes -= 2
            self._lose_on_target()
            if self.splits or self._happens(50):
                # What lost its marker is decided by what comes next.
                for partition in range(PARTITIONS):
                    self._write(None, partition, plain=True)
        self._end_reopened()
        self._quiet_until = self.clock.monotonic() + NOTICED_SECONDS

    def _is_done(self, state) -> bool:
        if state.problem:
            return not self.operator_accepts
        return not state.needs_check and state.committed >= self.source.stable_end(*state.key)


def _whole(log: list[Entry], end: int) -> int:
    """Where a log can end at, or before ``end``, without losing the marker of a record that it keeps."""
    ended = {id(each) for marker in log[end:] for each in marker.ends}
    split = [at for at, each in enumerate(log[:end]) if id(each.transaction) in ended]
    return _whole(log, split[0]) if split else end


def _copied(place: tuple[str, int], entry: Entry) -> int | None:
    """The source offset that a committed copy names."""
    if entry.transaction is not None and entry.transaction.state != "committed":
        return None
    return next(iter(_copies(place, [entry])), None)


def _copies(origin: tuple[str, int], entries: list[Entry]) -> list[int]:
    prefix = hop_prefix("east", *origin)
    offsets = (_source_offset(_message(origin, 0, each), prefix) for each in entries if each.record)
    return [offset for offset in offsets if offset is not None]


class _VirtualTime:
    """In place of a module's own clock."""

    def __init__(self, world: World) -> None:
        self.monotonic = world.clock.monotonic
        self.sleep = world.wait


def run_cut_schedule(
    seed: int,
    *,
    delivery: str = "exactly-once",
    chances: Chances,
    risks: frozenset[str] = frozenset(),
) -> list[str]:
    """Runs one schedule with cuts; returns what was broken, nothing where all held."""
    kept = periodic_checks.CHECK_TARGETS_SECONDS, own_transaction.time

    class Risky(CutWorld):
        def __init__(self, *given, **named) -> None:
            self.risks = risks
            super().__init__(*given, **named)
            own_transaction.time = _VirtualTime(self)

    periodic_checks.CHECK_TARGETS_SECONDS = CHECK_SECONDS
    try:
        return run_schedule(seed, delivery=delivery, chances=chances, world_of=Risky)
    finally:
        periodic_checks.CHECK_TARGETS_SECONDS, own_transaction.time = kept
