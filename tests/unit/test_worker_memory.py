"""What a worker remembers of its lanes, of its actions, and of the clusters beside it."""

from dataclasses import replace

import pytest
from confluent_kafka import KafkaError

from replicator.control.controller.recent_results import (
    CREATED_SECONDS,
    REFUSAL_SECONDS,
    RecentResults,
)
from replicator.control.worker.lane_confirmation import TOLD_SECONDS as UNCONFIRMED_SECONDS
from replicator.control.worker.lane_confirmation import LaneConfirmation
from replicator.control.worker.owned_lanes import OwnedLanes
from replicator.control.worker.pair_problems import PairProblems
from replicator.dataplane.health.connection_problems import ConnectionProblems
from replicator.dataplane.transport.spec import LaneSettings, LaneSpec
from replicator.errors import NotAuthorizedError, TransientBrokerError
from replicator.policy.values import StartFrom
from replicator.problem import Problem
from replicator.testing.kit.manual_clock import ManualClock
from replicator.topology.plan import ClusterPlan

REFUSED = Problem("UNAUTHORIZED", "topic:a", "may not create", "Grant it.")


@pytest.fixture
def spec() -> LaneSpec:
    return LaneSpec(
        topology="shop",
        link="link",
        source=ClusterPlan("east", ("e:1",)),
        target=ClusterPlan("west", ("w:1",)),
        lane=0,
        layout_epoch=1,
        settings=LaneSettings(
            "exactly-once", 0.2, "full", ("west",), StartFrom(), "quarantine", "stop"
        ),
        work=(),
    )


class TestOwnedLanes:
    def test_an_order_goes_out_once_and_again_when_it_differs(self, spec):
        lanes, started = OwnedLanes(), []
        lanes.add([0])
        assert lanes.send({0: spec}, started.append) == []
        assert lanes.send({0: spec}, started.append) == []
        other = replace(spec, layout_epoch=spec.layout_epoch + 1)
        lanes.send({0: other}, started.append)
        assert started == [spec, other]
        assert lanes.running == (0,)

    def test_a_lane_that_was_taken_away_is_not_started(self, spec):
        lanes, started = OwnedLanes(), []
        lanes.add([0])
        assert lanes.remove([0]) == []
        lanes.send({0: spec}, started.append)
        assert started == []
        assert lanes.running == ()

    def test_what_runs_is_notified_when_it_is_taken_away_or_no_longer_wanted(self, spec):
        lanes = OwnedLanes()
        lanes.add([0, 1, 2])
        lanes.send(dict.fromkeys(range(3), spec), lambda _: None)
        assert lanes.remove([1]) == [1]
        assert lanes.send({0: spec}, lambda _: None) == [2]
        assert lanes.end_all() == [0]
        assert lanes.running == ()

    def test_a_fenced_lane_rests_until_the_coordinator_says_that_it_is_ours(self, spec):
        lanes, started = OwnedLanes(), []
        lanes.add([0])
        lanes.send({0: spec}, started.append)
        lanes.ended(0, fenced=True)
        assert lanes.unconfirmed == {0}
        lanes.send({0: spec}, started.append)
        assert len(started) == 1
        lanes.confirm([0])
        lanes.send({0: spec}, started.append)
        assert len(started) == 2

    def test_the_end_of_a_lane_that_was_asked_for_casts_no_doubt(self, spec):
        lanes = OwnedLanes()
        lanes.add([0])
        lanes.send({0: spec}, lambda _: None)
        lanes.send({}, lambda _: None)
        lanes.ended(0, fenced=True)
        assert not lanes.unconfirmed


class TestLaneConfirmation:
    """A lane that was replaced though it is ours waits for the group's word, and is named while it waits."""

    @pytest.fixture
    def scene(self, spec):
        clock, lanes = ManualClock(), OwnedLanes()
        problems = PairProblems("west", group="workers")
        lanes.add([0, 1, 2])
        lanes.send(dict.fromkeys(range(3), spec), lambda _: None)
        lanes.ended(1, fenced=True)
        return clock, lanes, problems, LaneConfirmation("a->b", lanes, problems, clock=clock)

    class Group:
        answer = frozenset()

        def confirmed(self, lanes):
            if isinstance(self.answer, Exception):
                raise self.answer
            return self.answer & lanes

    def test_a_refusal_is_named_within_seconds_and_until_the_group_confirms(self, scene):
        clock, lanes, problems, confirmation = scene
        group = self.Group()
        group.answer = NotAuthorizedError("cannot ask: refused", remedy="Allow READ on the group.")
        assert confirmation.still_unconfirmed(group) == {1}
        assert problems.all() == (), "a group that rebalances says so within seconds"
        clock.advance(UNCONFIRMED_SECONDS)
        assert confirmation.still_unconfirmed(group) == {1}
        (told,) = problems.all()
        assert (told.code, told.subject) == ("NOT_AUTHORIZED", "lane 1")
        assert "workers does not confirm" in told.detail
        assert "refused" in told.detail
        assert told.remedy == "Allow READ on the group."
        group.answer = frozenset({1})
        assert confirmation.still_unconfirmed(group) == frozenset()
        assert (problems.all(), lanes.unconfirmed) == ((), frozenset())

    def test_a_group_that_only_says_no_is_named_too_and_not_after_the_lanes_are_gone(self, scene):
        clock, lanes, problems, confirmation = scene
        lanes.ended(2, fenced=True)
        assert confirmation.still_unconfirmed(self.Group()) == {1, 2}
        clock.advance(UNCONFIRMED_SECONDS)
        confirmation.still_unconfirmed(self.Group())
        (told,) = problems.all()
        assert (told.code, told.subject) == ("NOT_MOVING", "flow")
        assert told.remedy
        lanes.remove([1, 2])
        assert confirmation.still_unconfirmed(self.Group()) == frozenset()
        assert problems.all() == ()


class TestAftermath:
    def test_a_refusal_rests_for_its_time(self):
        clock = ManualClock()
        memory = RecentResults(clock)
        memory.remember(created=(), refusals={"create:a": REFUSED})
        clock.advance(REFUSAL_SECONDS - 1)
        assert memory.refusals == {"create:a": REFUSED}
        clock.advance(1)
        assert memory.refusals == {}

    def test_a_created_topic_is_remembered_until_it_shows_or_should_have(self):
        clock = ManualClock()
        memory = RecentResults(clock)
        memory.remember(created=["a", "b"], refusals={})
        memory.seen({"a"})
        assert set(memory.created) == {"b"}
        clock.advance(CREATED_SECONDS)
        memory.seen(set())
        assert not memory.created


class TestConnectionProblems:
    def test_an_error_belongs_to_the_cluster_it_names(self):
        problems = ConnectionProblems(source="east", target="west")
        problems.on_failure(
            TransientBrokerError("no leader", subject="cluster:east", remedy="Wait.")
        )
        assert (problems.source, problems.target) == ("UNREACHABLE no leader\nWait.", "")
        problems.on_failure(TransientBrokerError("broken", subject="lane", remedy="Look."))
        assert problems.target.endswith("broken\nLook.")

    def test_a_client_reports_the_loss_and_the_return_of_its_connection(self):
        problems = ConnectionProblems(source="east", target="west")
        problems.note("target", KafkaError(KafkaError._TRANSPORT))
        assert problems.any()
        assert not problems.source
        problems.note("target", None)
        assert not problems.any()

    def test_a_side_is_well_again_once_it_moved_or_answered(self):
        problems = ConnectionProblems(source="east", target="west")
        for side in ("source", "target"):
            problems.note(side, KafkaError(KafkaError._TRANSPORT))
        asked = []

        def silent(side):
            asked.append(side)
            return False

        problems.clear_answered(commits=0, read=0, answers=silent)
        assert problems.source
        assert problems.target
        assert set(asked) == {"source", "target"}
        problems.clear_answered(commits=0, read=5, answers=silent)
        assert not problems.source
        assert problems.target
        problems.clear_answered(commits=0, read=5, answers=lambda _: True)
        assert not problems.any()
