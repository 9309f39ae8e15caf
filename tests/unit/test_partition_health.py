"""A partition's failure is kept with its partition until that partition itself makes progress."""

from dataclasses import replace
from itertools import pairwise

import pytest

from replicator.control.store.worker_record import MOST_FAILURES, lane_problems
from replicator.dataplane.health.target_check import unwritable_partitions, write_refusal
from replicator.dataplane.progress.partition_health import RETRY_MOST_SECONDS, PartitionHealth
from replicator.errors import (
    NotAuthorizedError,
    NotFoundError,
    TransientBrokerError,
    UnreachableError,
)
from replicator.formats.lane_stats import LaneStats, PartitionStats
from replicator.formats.partition_failure import PartitionFailure
from replicator.kafka.admin.topics import TopicDescription
from replicator.observability.health import PairHealth, ReadinessFacts, readiness
from replicator.policy.copies.topic_config import ConfigValue

NOW = 1_700_000_000_000
DENIED = NotAuthorizedError("the cluster refuses it to our user", remedy="Allow it by an ACL.")


def denied(at_ms=NOW - 30_000):
    return PartitionFailure("NOT_AUTHORIZED", "source", DENIED.message, DENIED.remedy, at_ms)


def failed(side="source", *, times=1, position=10):
    health = PartitionHealth()
    for attempt in range(times):
        health.failed(side, DENIED, position=position, now=100.0 * attempt, at_ms=attempt)
    return health


@pytest.mark.parametrize(
    ("side", "position", "committed"), [("source", 11, 10), ("target", 99, 11)]
)
def test_only_progress_on_the_side_that_failed_ends_a_failure(side, position, committed):
    health = failed(side)
    assert health.recovered(position=10 if side == "source" else 99, committed=10) is None
    ended = health.recovered(position=position, committed=committed)
    assert ended is not None
    assert ended.code == "NOT_AUTHORIZED"
    assert health.failure is None


def test_the_end_of_the_source_ends_what_failed_there_and_nothing_on_the_target():
    reading, writing = failed("source"), failed("target")
    reading.at_end()
    writing.at_end()
    assert reading.recovered(position=10, committed=10)
    assert not writing.recovered(position=10, committed=10)


def test_where_nothing_is_left_to_copy_the_targets_answer_on_the_partition_ends_a_failure_there():
    health = failed("target")
    health.takes_writes()
    assert not health.recovered(position=10, committed=10), "more may wait at the source"
    health.at_end()
    assert not health.recovered(position=11, committed=10), "a record is not stored yet"
    assert health.recovered(position=10, committed=10)
    again = failed("target")
    again.takes_writes()
    again.failed("target", DENIED, position=10, now=0.0, at_ms=1)
    again.at_end()
    assert not again.recovered(position=10, committed=10), "that was before it failed again"


def test_a_failure_that_repeats_keeps_its_beginning_and_is_tried_less_often():
    health = failed(times=8)
    assert health.failure.since_ms == 0
    assert health.retry_at == 700.0 + RETRY_MOST_SECONDS
    assert not health.failed("source", DENIED, position=10, now=0.0, at_ms=9)
    busy = TransientBrokerError("no leader")
    assert health.failed("source", busy, position=10, now=0.0, at_ms=9), "another cause is news"
    assert health.failure.since_ms == 0


def told(health, *causes, every=15.0, until=600.0):
    """The times at which causes that take turns are told; one is met every so many seconds."""
    met = range(int(until / every))
    return [
        number * every
        for number in met
        if health.failed(
            "target", causes[number % len(causes)], position=10, now=number * every, at_ms=number
        )
    ]


def test_a_cause_is_told_when_it_changes_and_not_for_each_retry():
    gone, few = NotFoundError("gone"), TransientBrokerError("1 of its replicas are in sync")
    health = PartitionHealth()
    assert told(health, gone) == [0.0]
    assert health.failed("target", few, position=10, now=700.0, at_ms=9)
    fewer = TransientBrokerError("0 of its replicas are in sync")
    assert not health.failed("target", fewer, position=10, now=701.0, at_ms=9), "only a number"
    no_leader = TransientBrokerError("the partition has no leader")
    assert health.failed("target", no_leader, position=10, now=702.0, at_ms=9), "the same code"
    assert health.failure.since_ms == 0


def test_causes_that_take_turns_do_not_flood_the_log_and_the_last_one_is_told():
    one, other = NotFoundError("gone"), TransientBrokerError("no leader")
    health = PartitionHealth()
    times = told(health, one, other, until=3600.0)
    assert times[:2] == [0.0, 15.0]
    assert all(after - before >= 30.0 for before, after in pairwise(times[1:]))
    assert len(times) < 20
    last = health.failed("target", other, position=10, now=3600.0, at_ms=9)
    again = health.failed("target", other, position=10, now=4000.0, at_ms=9)
    assert last != again, "what holds on is what the log says last, and says once"


def test_causes_without_end_are_told_as_those_that_take_turns():
    health = PartitionHealth()
    many = [NotFoundError("x" * number) for number in range(1, 241)]
    assert len(told(health, *many, until=3600.0)) < 30


def test_after_a_recovery_the_first_cause_is_told_again():
    health = failed("target")
    assert health.recovered(position=11, committed=11)
    assert health.failed("target", DENIED, position=11, now=100.0, at_ms=2)


def test_an_end_that_was_seen_before_the_failure_does_not_end_it():
    health = failed()
    health.at_end()
    health.failed("source", DENIED, position=10, now=0.0, at_ms=1)
    assert health.recovered(position=10, committed=10) is None


def lane(partitions):
    stats = PartitionStats(
        topic="orders", partition=0, target_topic="orders", state="failed", position=5,
        source_end=9, timestamp_ms=-1, records=0, bytes=0, failure=denied(),
    )  # fmt: skip
    return LaneStats(
        pair="east->west", link="orders-dr", lane=0, state="running", reason="copying",
        partitions=tuple(replace(stats, partition=number) for number in range(partitions)),
    )  # fmt: skip


def test_a_worker_reports_code_place_time_and_remedy_and_stays_small_where_everything_fails():
    (problem,) = lane_problems(lane(1))
    assert (problem.code, problem.subject) == ("NOT_AUTHORIZED", "orders/0")
    assert "on the source, since 2023-11-14T22:12:50" in problem.detail
    assert problem.remedy == DENIED.remedy

    many = lane_problems(lane(500))
    assert len(many) == MOST_FAILURES + 1
    assert many[-1].subject == "flow"
    assert "480 more partitions" in many[-1].detail


def test_readiness_names_partitions_that_do_not_move_and_fails_where_none_does():
    pair = PairHealth("east->west", joined=True, lanes_assigned=1, lanes_running=1, partitions=2)
    some = readiness(ReadinessFacts([], [replace(pair, failing=["orders/0 does not move: X"])]))
    assert some.ok
    assert some.details == ("east->west: orders/0 does not move: X",)
    none = readiness(ReadinessFacts([], [replace(pair, failing=["a", "b"])]))
    assert not none.ok
    assert none.reasons == ("east->west: none of 2 partitions moves",)


TOPIC = TopicDescription(
    name="orders", topic_id="id", partitions=3, replication_factor=3, leaderless=(1,),
    authorized_operations=frozenset({"READ", "WRITE"}), in_sync=((0, 3), (1, 0), (2, 1)),
)  # fmt: skip


def refusal(partition, topic=TOPIC, *, needed=2):
    return write_refusal(("orders", partition), topic, in_sync_needed=needed)


def test_a_target_partition_that_takes_no_writes_is_named_with_its_reason_and_remedy():
    assert refusal(0) is None
    assert "no leader" in refusal(1).message
    assert "1 of its replicas are in sync on the target, 2 are needed" in refusal(2).message
    assert refusal(2, needed=1) is None
    few = replace(TOPIC, replication_factor=1, in_sync=((0, 1),))
    assert refusal(0, few) is None, "a topic cannot need more replicas than it has"

    read_only = replace(TOPIC, authorized_operations=frozenset({"READ", "DESCRIBE"}))
    assert refusal(0, read_only).code == "NOT_AUTHORIZED"
    untold = replace(TOPIC, authorized_operations=frozenset())
    assert refusal(0, untold) is None, "not every broker says what we may do"
    assert refusal(0, DENIED) is DENIED
    assert refusal(0, NotFoundError("gone")).code == "NOT_FOUND"
    assert refusal(0, None) is None
    for found in (refusal(1), refusal(2), refusal(0, read_only), refusal(0, NotFoundError("gone"))):
        assert found.remedy
        assert found.subject.startswith("orders/")


class OneReplicaLeft:
    """A target that describes its topic, and says of its settings what a test wants."""

    def __init__(self, settings):
        self.settings = settings

    def describe_each_topic(self, names):
        return dict.fromkeys(names, replace(TOPIC, leaderless=(), in_sync=((2, 1),)))

    def topic_configs(self, names):
        if isinstance(self.settings, Exception):
            raise self.settings
        setting = ConfigValue(self.settings, is_default=False)
        return {name: {"min.insync.replicas": setting} for name in names}


def test_a_setting_that_nobody_told_just_now_makes_no_partition_writable():
    places = [("orders", 2)]
    assert list(unwritable_partitions(OneReplicaLeft("2"), places)) == places
    assert unwritable_partitions(OneReplicaLeft("1"), places) == {}
    assert unwritable_partitions(OneReplicaLeft(DENIED), places) == {}, "it is never told"
    for silent in (UnreachableError("no broker"), TransientBrokerError("it moves")):
        with pytest.raises(type(silent)):
            unwritable_partitions(OneReplicaLeft(silent), places)


@pytest.mark.parametrize("answered", [{}, {"other": DENIED}])
def test_that_no_broker_answers_is_no_refusal_of_a_partition(answered):
    down = UnreachableError("cannot describe topic orders: no broker answers", subject="cluster:w")

    class Down:
        def describe_each_topic(self, names):
            return {name: answered.get(name, down) for name in names}

    with pytest.raises(UnreachableError) as told:
        unwritable_partitions(Down(), [("orders", 0), ("other", 0)])
    assert told.value.subject == "cluster:w"
