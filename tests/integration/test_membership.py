"""A worker's place in the group: lost for good, it is given up, and the owner of the place joins anew."""

import pytest

from replicator.dataplane.process.membership import Membership
from replicator.errors import NotAuthorizedError, ReplicatorError, UnreachableError
from replicator.testing import wait_until
from replicator.testing.faults.protocol_proxy import ProtocolProxy
from replicator.testing.faults.protocol_rules import Answer, Api, Delay, Match, Rule
from replicator.topology.plan import ClusterPlan


@pytest.fixture
def join(west, unique):
    joined = []
    west.create_topic(unique, partitions=2)

    def join(name, servers=west.bootstrap_servers):
        lanes, problems = set(), []
        member = Membership(
            cluster=ClusterPlan("west", tuple(servers)), group=unique, topic=unique,
            client_id="test", instance_id=name, on_assigned=lanes.update,
            on_revoked=lambda given_up, _lost: lanes.difference_update(given_up),
            on_problem=problems.append,
        )  # fmt: skip
        joined.append(member)
        member.start()
        return member, lanes, problems

    yield join
    for member in joined:
        member.stop(10)


def test_a_named_worker_whose_name_was_taken_ends_its_membership_and_may_join_again(join):
    first, lanes, problems = join("a-name")
    wait_until(lambda: lanes == {0, 1}, timeout_seconds=60, describe="the lanes of the first")
    first.require_alive()
    second, taken, _ = join("a-name")
    wait_until(lambda: taken == {0, 1}, timeout_seconds=60, describe="the lanes of the second")
    wait_until(
        lambda: not first.is_alive(), timeout_seconds=30, describe=lambda: f"its end: {problems}"
    )
    with pytest.raises(ReplicatorError, match="lost its place") as told:
        first.require_alive()
    assert "--worker-id" in told.value.remedy

    second.stop(10)
    _, again, _ = join("a-name")
    wait_until(lambda: again == {0, 1}, timeout_seconds=60, describe="its lanes again")


def test_a_cluster_that_was_away_for_less_than_a_session_is_no_problem_any_more(
    join, proxied, unique
):
    """Nothing is assigned anew then, so that nothing but an answer of the coordinator ends the problem."""
    proxied.create_topic(unique, partitions=2)
    _, lanes, problems = join(None, proxied.bootstrap_servers)
    wait_until(lambda: lanes == {0, 1}, timeout_seconds=60, describe="the lanes")
    problems.clear()
    proxied.proxy.cut()
    try:
        wait_until(lambda: any(problems), timeout_seconds=30, describe="the problem")
    finally:
        proxied.proxy.heal()
    wait_until(
        lambda: problems[-1] is None, timeout_seconds=30, describe=lambda: f"its end: {problems}"
    )


def test_of_several_brokers_the_coordinator_alone_decides_whether_one_that_is_away_is_a_problem(
    join, clusters, unique
):
    (three,) = clusters("west", brokers=3, proxied=True)
    three.create_topic(unique, partitions=2)
    _, lanes, problems = join(None, three.bootstrap_servers)
    wait_until(lambda: lanes == {0, 1}, timeout_seconds=60, describe="the lanes")
    group = three.admin().describe_consumer_groups([unique])[unique].result(30)
    proxies = dict(zip([one.node_id for one in three.brokers], three.proxies, strict=True))
    coordinator = proxies.pop(group.coordinator.id)
    problems.clear()
    for proxy in proxies.values():
        proxy.cut()
    wait_until(lambda: problems, timeout_seconds=60, describe="that somebody asked")
    assert not any(problems), problems
    coordinator.cut()
    wait_until(lambda: any(problems), timeout_seconds=30, describe="the problem")
    coordinator.heal()
    wait_until(
        lambda: problems[-1] is None, timeout_seconds=30, describe=lambda: f"its end: {problems}"
    )


GROUP_AUTHORIZATION_FAILED, ILLEGAL_GENERATION = 30, 22


def test_a_group_that_does_not_say_whose_lanes_are_is_told_from_one_that_says_no(
    join, west, monkeypatch
):
    monkeypatch.setattr("replicator.dataplane.process.membership.VERIFY_SECONDS", 2.0)
    rules = (
        Rule(Match(Api.OFFSET_COMMIT, nth=2), Answer(GROUP_AUTHORIZATION_FAILED)),
        Rule(Match(Api.OFFSET_COMMIT, nth=3), Answer(ILLEGAL_GENERATION)),
        Rule(Match(Api.OFFSET_COMMIT, nth=4), Delay(response_seconds=2.5)),
    )
    with ProtocolProxy(west.bootstrap_servers, rules) as proxy:
        member, lanes, _ = join("a-name", proxy.bootstrap_servers)
        wait_until(lambda: lanes == {0, 1}, timeout_seconds=60, describe="the lanes")
        assert member.confirmed(frozenset({0, 1})) == {0, 1}
        with pytest.raises(NotAuthorizedError) as told:
            member.confirmed(frozenset({0}))
        assert "the group" in told.value.remedy
        assert member.confirmed(frozenset({0})) == frozenset()
        with pytest.raises(UnreachableError, match="did not answer within") as told:
            member.confirmed(frozenset({0}))
        assert told.value.subject == "cluster:west"
        assert member.confirmed(frozenset({1})) == {1}, "it is asked anew, whatever came late"
