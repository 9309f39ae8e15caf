"""A partition with waiting records that stands still without an error is noticed, and no other is blamed."""

import pytest

from replicator.dataplane.health.held_to_rate import LOOK_AGAIN_SECONDS, HeldToRate
from replicator.dataplane.health.no_share import NoShare
from replicator.dataplane.health.silent_partitions import SILENT_ROUNDS, SilentPartitions
from replicator.dataplane.health.standstill import STILL_SECONDS, Standstill
from replicator.dataplane.progress.partition_state import PartitionState
from replicator.dataplane.transport.spec import PartitionWork
from replicator.errors import NotMovingError, SourceDamagedError
from replicator.policy.values import Throttle
from replicator.testing import ManualClock
from replicator.topology.plan import ClusterPlan


class Watch:
    """A judge that looks once a second at partitions of a lane that now and then finds nothing."""

    def __init__(self, *ends):
        self.clock = ManualClock()
        self.polls = 0
        self.states = [
            PartitionState(
                PartitionWork("orders", number, "orders", ""),
                source_alias="east",
                provenance="full",
            )
            for number in range(len(ends))
        ]
        for state, end in zip(self.states, ends, strict=True):
            state.position, state.source_end = 10, end
        self.judge = Standstill(
            source=ClusterPlan("east", ("127.0.0.1:1",)), client_id="test", clock=self.clock
        )

    def look(self, seconds, *, idle=True, each=lambda: None):
        found = []
        for _ in range(int(seconds)):
            self.clock.advance(1.0)
            self.polls += idle
            each()
            found += self.judge.suspects(self.states, empty_polls=self.polls)
        return [state.partition for state in found]


def test_only_a_partition_that_is_stuck_before_known_records_is_suspected():
    watch = Watch(20, 10, -1)
    assert watch.look(STILL_SECONDS) == []
    assert watch.judge.waiting
    assert watch.look(1) == [0]
    assert watch.look(STILL_SECONDS - 1) == [], "asked about again only after as long"
    assert watch.look(1) == [0]


def test_a_partition_that_moves_now_and_then_is_not_suspected():
    watch = Watch(10_000)

    def move():
        watch.states[0].position += 1

    assert watch.look(STILL_SECONDS - 1) == []
    move()
    assert watch.look(STILL_SECONDS - 1) == []
    assert watch.look(60, each=move) == []


def test_a_lane_that_is_busy_or_waits_for_its_target_blames_no_partition():
    watch = Watch(20)
    assert watch.look(60, idle=False) == []


def drained(watch, *, records=5_000):
    """What is read of the first partition between two looks, as long as it lasts."""

    def read():
        state = watch.states[0]
        state.position = min(state.position + records, state.source_end)

    return read


def test_partitions_that_wait_until_others_have_drained_their_backlog_are_not_suspected():
    watch = Watch(200_000, 100_000)
    assert watch.look(40, each=drained(watch)) == []
    assert watch.look(STILL_SECONDS - 1) == []
    assert watch.look(2) == [1], "the backlog of the first one is over, and still nothing comes"


def test_many_partitions_that_are_drained_one_after_the_other_are_no_less_a_backlog():
    watch = Watch(*[1_000] * 60)
    left = iter(watch.states)

    def next_one_is_read():
        state = next(left)
        state.position = state.source_end

    assert watch.look(60, each=next_one_is_read) == []


def test_new_records_of_other_partitions_do_not_hide_a_stuck_one():
    watch = Watch(10, 100)

    def written_and_read():
        watch.states[0].position += 1_000
        watch.states[0].source_end = watch.states[0].position + 50

    assert watch.look(STILL_SECONDS + 1, each=written_and_read) == [1]


def test_silence_is_counted_only_while_no_backlog_is_drained():
    watch, silent = Watch(200_000, 100_000), SilentPartitions()
    read = drained(watch)
    for _ in range(30):
        read()
        assert silent.suspects(watch.states, {}) == []
    watch.states[0].position = watch.states[0].source_end
    found = [silent.suspects(watch.states, {}) for _ in range(SILENT_ROUNDS + 2)]
    assert [each for each in found if each] == [[watch.states[1]]]


@pytest.mark.parametrize("why", ["problem", "check", "failure"])
def test_what_is_known_not_to_move_is_not_asked_about(why):
    watch = Watch(20)
    (state,) = watch.states
    if why == "problem":
        state.problem = "TRUNCATED"
    elif why == "check":
        state.needs_check = True
    else:
        state.health.failed("source", NotMovingError("still"), position=10, now=0.0, at_ms=0)
    assert watch.look(60) == []
    assert not watch.judge.waiting


def throttled_look(watch, seconds, *, waited, held=(), idle=True):
    """As ``look``, of a lane that waits ``waited`` of each second for its rate."""
    found = []
    for _ in range(int(seconds)):
        watch.clock.advance(1.0)
        watch.polls += idle
        watch.waited = getattr(watch, "waited", 0.0) + waited
        found += watch.judge.suspects(
            watch.states, empty_polls=watch.polls, throttled_seconds=watch.waited, held=held
        )
    return [state.partition for state in found]


def test_a_throttled_lane_that_could_have_read_by_its_rate_is_judged_as_any():
    watch = Watch(20, 10)
    assert throttled_look(watch, STILL_SECONDS, waited=0.0) == []
    assert throttled_look(watch, 1, waited=0.0) == [0]


def test_time_in_which_a_rate_lets_a_lane_read_nothing_is_no_standstill():
    watch = Watch(20)
    assert throttled_look(watch, 60, waited=1.0) == []
    half = Watch(20)
    assert throttled_look(half, 2 * STILL_SECONDS, waited=0.5) == []
    assert throttled_look(half, 2, waited=0.5) == [0], "half of the time it could have read"


def test_a_few_records_that_always_wait_for_a_rate_hide_no_stuck_partition():
    watch = Watch(20, 10)

    def written_and_copied_in_part():
        watch.states[1].position += 20
        watch.states[1].source_end = watch.states[1].position + 15

    found = []
    for second in range(12):
        written_and_copied_in_part()
        idle = second % 3 > 0  # now and then its rate is used up
        found += throttled_look(watch, 1, waited=0.2 if idle else 1.0, idle=idle)
    assert found == [0]


def test_a_backlog_that_a_rate_makes_last_keeps_others_waiting_on_purpose():
    watch = Watch(20, 10_000)

    def at_its_rate():
        watch.states[1].position += 20

    found = []
    for _ in range(60):
        at_its_rate()
        found += throttled_look(watch, 1, waited=0.2)
    assert found == []


def test_what_makes_way_for_a_higher_priority_stands_still_on_purpose():
    watch = Watch(20, 20)
    held = {watch.states[1].key}
    assert set(throttled_look(watch, 60, waited=0.0, held=held)) == {0}
    assert throttled_look(watch, STILL_SECONDS, waited=0.0) == [0]


def test_a_lane_saturated_by_its_rate_looks_at_what_stands_still_and_seldom_twice():
    watch = Watch(20, 10_000)
    rate = HeldToRate(still_seconds=STILL_SECONDS)
    looked_at = []
    for now in range(int(STILL_SECONDS + LOOK_AGAIN_SECONDS) + 2):
        watch.states[1].position += 20
        found = rate.to_look_at(watch.states, throttled=True, now=float(now))
        looked_at += [(state.partition, now) for state in found]
    assert looked_at == [(0, STILL_SECONDS), (0, STILL_SECONDS + LOOK_AGAIN_SECONDS)]
    assert rate.to_look_at(watch.states, throttled=False, now=1e6) == []


def test_many_partitions_are_looked_at_in_turn():
    watch = Watch(*[20] * 10)
    rate = HeldToRate(still_seconds=STILL_SECONDS)
    seen = []
    for now in range(int(STILL_SECONDS) + 5):
        found = rate.to_look_at(watch.states, throttled=True, now=float(now))
        assert len(found) <= 3, "each look takes a while"
        seen += [state.partition for state in found]
    assert sorted(seen) == list(range(10))


def test_what_the_source_says_of_a_partition_counts_though_the_lane_is_held_to_its_rate(
    monkeypatch,
):
    watch, damage = Watch(20, 10_000), SourceDamagedError("not readable")
    still = NotMovingError("it waits its turn, or not")
    answers = [{watch.states[0]: still}, {watch.states[0]: damage}]
    asked = []

    def judged(_, suspects):
        asked.append([state.partition for state in suspects])
        return answers[len(asked) - 1]

    monkeypatch.setattr(Standstill, "_judged", judged)
    found = []
    for second in range(int(STILL_SECONDS + LOOK_AGAIN_SECONDS) + 3):
        watch.clock.advance(1.0)
        watch.states[1].position += 20
        found += watch.judge.found(
            watch.states, empty_polls=0, throttled_seconds=second + 1.0
        ).values()
    assert asked == [[0], [0]]
    assert found == [damage]


class WithoutShare:
    """A lane that is told its share, and a source that is asked where partitions end."""

    def __init__(self, *ends):
        self.watch, self.ends, self.asked = Watch(*ends), dict(enumerate(ends)), 0
        self.share = Throttle(records_per_second=0)
        self.judge = NoShare(3)

    def _ends(self, keys):
        self.asked += 1
        return {key: self.ends[key[1]] for key in keys}

    def look(self, seconds, each=lambda: None):
        found = {}
        for _ in range(seconds):
            self.watch.clock.advance(1.0)
            each()
            now = self.watch.clock.monotonic()
            found |= self.judge.found(self.watch.states, self.share, self._ends, now=now)
        return {state.partition: error for state, error in found.items()}


def test_records_that_wait_for_a_share_are_named_within_ten_seconds_with_the_remedy():
    lane = WithoutShare(20, 10)
    (found,) = lane.look(9).items()
    assert found[0] == 0
    assert found[1].code == "NOT_MOVING"
    assert "lane 3 has no share of the flow's throttle" in found[1].message
    assert "recordsPerSecond" in found[1].remedy


def test_a_lane_that_has_a_share_again_or_moves_is_not_named():
    lane = WithoutShare(1_000)

    def moves():
        lane.watch.states[0].position += 1

    assert lane.look(30, each=moves) == {}
    lane.share = Throttle(records_per_second=1)
    asked = lane.asked
    assert lane.look(30) == {}
    assert lane.asked == asked, "a lane with a share asks nobody"
