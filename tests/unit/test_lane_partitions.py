"""What a lane does with partitions of which two answers do not agree, or of which nobody answers."""

import itertools
from dataclasses import replace

import pytest
from session_lab import SessionLab
from simulated_lane import TOPIC, Chances, SourceAdmin, World
from simulated_schedule import on_virtual_time

from replicator.dataplane.health import damaged_source
from replicator.dataplane.health.connection_problems import ConnectionProblems
from replicator.dataplane.health.damaged_source import damaged
from replicator.dataplane.health.silent_partitions import SILENT_ROUNDS
from replicator.dataplane.health.unheard_records import LOOK_SECONDS, UnheardRecords
from replicator.dataplane.lane.lane_report import LaneReport
from replicator.dataplane.lane.misled_clients import FORGOTTEN_SECONDS, MisledClients
from replicator.dataplane.lane.partition_news import PartitionNews
from replicator.dataplane.lane.partitions import (
    LanePartitions,
    UnlookedTargetError,
)
from replicator.dataplane.lane.periodic_checks import (
    CHECK_TARGETS_SECONDS,
    LOOK_AGAIN_SECONDS,
    MOST_UNLOOKED,
    RECHECK_SECONDS,
    PeriodicChecks,
)
from replicator.dataplane.lane.two_ids import DISAGREE_SECONDS
from replicator.dataplane.progress.lane_counters import LaneCounters
from replicator.dataplane.takeover.changed_logs import ChangedLogs
from replicator.errors import TransientBrokerError, UnreachableError
from replicator.logins.cluster_login import login_of
from replicator.policy.capacity.answer_size import AnswerSize
from replicator.wire.requests.known_leaders import KnownLeader, KnownLeaders

NOBODY_ACTS = Chances(writes=0, transactions=0, crash=0, sleep=0, late=0, trouble=0, drops=0)
FEW = TransientBrokerError(
    "cannot write to orders/0: 1 of its replicas are in sync", remedy="Wait."
)


class NamedAdmin(SourceAdmin):
    """One that gives the topic an id, and ends of logs that nothing is read of."""

    def __init__(self, cluster) -> None:
        super().__init__(cluster)
        self.ends = {}

    def offsets(self, keys, *, at, isolation):
        found = super().offsets(keys, at=at, isolation=isolation)
        return found | (self.ends if at == "latest" else {})

    def describe_each_topic(self, names):
        found = super().describe_each_topic(names)
        return {name: replace(topic, topic_id="id-1") for name, topic in found.items()}


class Lab:
    """The partitions of one lane, in a session between two clusters in memory."""

    def __init__(self) -> None:
        self.world = World(0, chances=NOBODY_ACTS)
        self.clock = self.world.clock
        self.world._running.append(1)
        self.said = []
        self.refusals = {}
        self.describes, self.silent = True, None
        self.known = KnownLeaders()
        self.newest, self.unasked = {}, None
        self.misled = MisledClients()
        self.answers = AnswerSize()
        self.world.read_targets = self.read_targets
        self.world.newest_end = self.newest_end
        self.world.known_leaders = lambda *_, **__: self.known
        self.clients = self.world.open_clients(
            self.world.spec, SessionLab()._context, record_by_record=False
        )
        self.admin = self.clients._source_admin = NamedAdmin(self.world.source)
        self.events = self.clients.session.events
        self.partitions = LanePartitions(
            self.world.spec, clients=self.clients, checkpoints={}, clock=self.clock, healths={},
            news=PartitionNews(lambda: self.world.spec, post=self.said.append),
            refusals=self.answer, changed=ChangedLogs(), misled=self.misled, answers=self.answers,
        )  # fmt: skip

    def answer(self, states):
        """What the target says of these partitions; a test decides."""
        asked = {(state.target_topic, state.partition) for state in states}
        if self.refusals is None:
            return None
        return {place: why for place, why in self.refusals.items() if place in asked}

    def read_targets(self, target, places, *, client_id):
        """The targets' logs; none where leaders are missing, so that it is asked which take writes."""
        if self.silent is not None:
            raise self.silent
        if not self.describes:
            return {}
        return World.read_targets(self.world, target, places, client_id=client_id)

    def newest_end(self, place):
        """Where a log of the source ends; a test decides."""
        if self.unasked is not None:
            raise self.unasked
        return self.newest.get(place, 0)

    def report(self, said):
        """What takes the lane's log lines to a list."""
        return LaneReport(
            lambda: self.world.spec, counters=LaneCounters(), post=said.append, states=list,
            problems=ConnectionProblems(source="east", target="west"), on_stats=lambda: None,
            quotas=lambda: (None, None),
            logins=(login_of(self.world.spec.source), login_of(self.world.spec.target)),
        )  # fmt: skip

    def begin(self):
        self.clients.producer.init_transactions()
        self.partitions.follow(self.world.spec)
        return self.partitions.states[TOPIC, 0]

    def hears_of_a_cut(self, state) -> None:
        """As the source's client tells it."""
        state.diverged = True
        self.events.require_check(state)
        self.partitions.examine_reported(self.events.take_to_check())

    def later(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.partitions.recheck()


@pytest.fixture
def lab():
    lab = Lab()
    with on_virtual_time(lab.world):
        yield lab


def test_two_ids_of_one_topic_are_told_when_they_last_and_end_by_themselves(lab):
    lab.events.on_topic_id(TOPIC, "id-2")
    state = lab.begin()
    lab.later(DISAGREE_SECONDS - 1)
    assert state.needs_check
    assert state.health.failure is None, "a topic that was created again has two for a moment"
    lab.later(1)
    told = state.health.failure
    assert (told.code, told.side) == ("NOT_MOVING", "source")
    assert "id-1" in told.detail
    assert "id-2" in told.detail
    assert told.remedy
    assert {line.fields["partition"] for line in lab.said} == {"0", "1"}
    attempts = state.health._attempts
    lab.later(0.1)
    assert state.health._attempts == attempts, "it is asked again less and less often"
    for _ in range(10):
        lab.later(60)
    assert len(lab.said) == 2, "and told once"

    lab.events.on_topic_id(TOPIC, "id-1")
    lab.later(60)
    assert state.is_read
    state.health.at_end()
    lab.partitions.note_recoveries()
    assert state.health.failure is None


def test_a_client_that_hears_of_a_cut_from_a_broker_of_the_past_again_is_not_kept(lab):
    state = lab.begin()
    lab.known = KnownLeaders({state.key: {KnownLeader("id-1", 4), KnownLeader("id-1", 5)}})
    lab.hears_of_a_cut(state)
    assert state.health.failure.code == "UNREACHABLE"
    assert not lab.misled.another_helps, "it may hear better from the next broker"
    lab.later(2)
    assert state.is_read, "it asked"
    lab.hears_of_a_cut(state)
    assert lab.misled.another_helps
    lab.misled.session_begins()
    for _ in range(2):
        assert not lab.misled.another_helps, "and longer is waited with each that meets it"
        lab.hears_of_a_cut(state)
        lab.later(2)
    lab.hears_of_a_cut(state)
    assert lab.misled.another_helps


def test_a_client_that_is_believed_is_kept(lab):
    state = lab.begin()
    for _ in range(3):
        lab.hears_of_a_cut(state)
        lab.later(60)
    assert state.problem == "TRUNCATED"
    assert not lab.misled.another_helps


class Looks:
    """What a lane's own connections say of the source, whose client says that there is nothing more."""

    def __init__(self, lab) -> None:
        self.refused = []
        self._lab = lab
        self._unheard = UnheardRecords(
            lab.world.spec.source, client_id="lab", clock=lab.clock, on_failure=self.refused.append
        )

    def rounds(self, count) -> None:
        """Of a lane that is free to read all the time."""
        for _ in range(count):
            self._lab.clock.advance(RECHECK_SECONDS)
            ends = self._unheard.ends(self._lab.partitions.states.values())
            self._lab.partitions.find_silent(free=True, unheard=ends)


def test_a_client_that_is_told_of_nothing_more_while_there_is_more_is_not_kept(lab):
    state = lab.begin()
    looks = Looks(lab)
    lab.newest[state.key] = state.position
    looks.rounds(100)
    assert (state.health.failure, lab.misled.another_helps) == (None, False)

    lab.newest[state.key] = state.position + 3
    looks.rounds(round(LOOK_SECONDS / RECHECK_SECONDS))
    looks.rounds(SILENT_ROUNDS + 2)
    assert state.is_read, "its own client may still hear of it"
    assert (state.health.failure.code, state.health.failure.side) == ("NOT_MOVING", "source")
    assert "has records up to 3" in state.health.failure.detail
    assert lab.misled.another_helps
    state.position += 3
    lab.partitions.note_recoveries()
    assert state.health.failure is None


def test_records_that_come_while_it_is_asked_are_no_reason_for_another_client(lab):
    """A lane that copies as it should is behind what others say for a moment, again and again."""
    state = lab.begin()
    looks = Looks(lab)
    for _ in range(100):
        lab.newest[state.key] = state.position + 1
        looks.rounds(1)
        state.position += 1
    assert (state.health.failure, lab.misled.another_helps) == (None, False)


def test_a_source_that_cannot_be_asked_is_told_once_until_it_can(lab):
    state = lab.begin()
    looks = Looks(lab)
    lab.newest[state.key] = state.position
    lab.unasked = UnreachableError("no broker answers")
    looks.rounds(100)
    assert [error.message for error in looks.refused] == ["no broker answers"]
    lab.unasked = None
    looks.rounds(30)
    lab.unasked = UnreachableError("no broker answers")
    looks.rounds(100)
    assert len(looks.refused) == 2
    assert (state.health.failure, lab.misled.another_helps) == (None, False)


class Waiting:
    """Records wait in partitions of a source that answers every question."""

    def __init__(self, lab) -> None:
        self._lab = lab
        lab.begin()
        lab.answers.answer_bytes(50 * 1024 * 1024)

    def wait_in(self, *partitions) -> None:
        for partition in partitions:
            state = self._lab.partitions.states[TOPIC, partition]
            state.source_end = self._lab.admin.ends[state.key] = 1_000

    def seconds(self, count, moving=None) -> str:
        """Rounds of a free lane, in which one partition may move; what they say of its clients."""
        for _ in range(round(count / RECHECK_SECONDS)):
            self._lab.later(RECHECK_SECONDS)
            if moving is not None:
                self._lab.partitions.states[TOPIC, moving].position += 1
            self._lab.partitions.find_silent(free=True, unheard={})
        return self._lab.answers.change


def test_where_nothing_comes_at_all_another_client_asks_for_less_and_nothing_is_called_damaged(lab):
    waiting = Waiting(lab)
    waiting.wait_in(0, 1)
    assert waiting.seconds(SILENT_ROUNDS * RECHECK_SECONDS) == ""
    assert "another client asks a broker for 8.0 MiB" in waiting.seconds(RECHECK_SECONDS)
    for state in lab.partitions.states.values():
        assert state.health.failure.code == "NOT_MOVING"
        assert "has records up to 1000" in state.health.failure.detail


def test_where_another_partition_moves_answers_are_not_too_large(lab):
    waiting = Waiting(lab)
    waiting.wait_in(0)
    assert waiting.seconds(100, moving=1) == ""
    assert lab.partitions.states[TOPIC, 0].health.failure.code == "NOT_MOVING"


def test_a_damaged_log_is_no_reason_to_ask_for_less(lab, monkeypatch):
    state = lab.begin()
    monkeypatch.setattr(damaged_source, "damages_of", lambda *_, **__: {state: damaged(state, "")})
    waiting = Waiting(lab)
    waiting.wait_in(0)
    assert waiting.seconds(100) == ""
    assert state.health.failure.code == "SOURCE_DAMAGED"


def test_what_reading_anew_does_not_help_is_read_anew_less_and_less_often(lab):
    """What was on its way is lost each time."""
    waiting = Waiting(lab)
    waiting.wait_in(0)
    state, asked = lab.partitions.states[TOPIC, 0], []
    for second in range(0, 400, 2):
        was_read = state.is_read
        waiting.seconds(RECHECK_SECONDS)
        if was_read and not state.is_read:
            asked.append(second)
    pauses = [after - before for before, after in itertools.pairwise(asked)]
    assert pauses == sorted(pauses)
    assert pauses[0] < 24
    assert pauses[-1] >= 64


def test_two_reports_that_lie_far_apart_are_no_reason_for_another_client(lab):
    state = lab.begin()
    lab.known = KnownLeaders({state.key: {KnownLeader("id-1", 4), KnownLeader("id-1", 5)}})
    for _ in range(3):
        lab.hears_of_a_cut(state)
        lab.later(FORGOTTEN_SECONDS + 1)
    assert not lab.misled.another_helps


def test_the_wait_for_one_id_begins_anew_once_there_was_one(lab):
    lab.events.on_topic_id(TOPIC, "id-2")
    state = lab.begin()
    lab.later(DISAGREE_SECONDS - 1)
    lab.events.on_topic_id(TOPIC, "id-1")
    lab.later(2)
    assert state.is_read
    lab.events.on_topic_id(TOPIC, "id-2")
    lab.partitions.examine(lab.events.take_to_check())
    lab.later(2)
    assert state.needs_check
    assert state.health.failure is None


def test_what_was_refused_stays_aside_while_the_target_gives_no_answer(lab):
    lab.refusals = {(TOPIC, 0): FEW}
    lab.describes = False
    state = lab.begin()
    assert state.health.failure.detail == FEW.message
    other = lab.partitions.states[TOPIC, 1]
    assert other.is_read
    lab.refusals = None
    for _ in range(5):
        lab.later(60)
        assert state.needs_check, "a record of it in a transaction would hold up the others"
        assert state.health.failure.detail == FEW.message
    assert len(lab.said) == 1
    lab.refusals = {}
    lab.later(60)
    assert state.is_read


def test_a_look_at_the_target_in_vain_ends_no_session_and_three_in_a_row_do(lab):
    state = lab.begin()
    lab.silent = UnreachableError("no broker answers", subject="cluster:west", remedy="Look.")
    said = []
    checks = PeriodicChecks(
        lab.world.spec, report=lab.report(said), context=SessionLab()._context, clock=lab.clock
    )
    for _ in range(MOST_UNLOOKED - 1):
        assert checks._look_at_targets(lab.partitions) == LOOK_AGAIN_SECONDS
    assert state.is_read
    assert [line.event for line in said] == ["target could not be looked at"] * (MOST_UNLOOKED - 1)
    assert said[0].fields["error"].endswith("no broker answers")
    lab.silent = None
    assert checks._look_at_targets(lab.partitions) == CHECK_TARGETS_SECONDS
    lab.silent = UnreachableError("no broker answers")
    for _ in range(MOST_UNLOOKED - 1):
        checks._look_at_targets(lab.partitions)
    with pytest.raises(UnlookedTargetError):
        checks._look_at_targets(lab.partitions)
