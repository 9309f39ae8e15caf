"""Groups on the old cluster: a switchover waits for those that still work, and a failover says which it cannot see."""

from dataclasses import replace

import pytest
from confluent_kafka import Consumer
from link_lab import evidence

from replicator.clock import SystemClock
from replicator.failover.clusters.groups_move import GroupMove
from replicator.testing import ProtocolProxy, wait_until
from replicator.testing.faults.protocol_rules import Answer, Api, Match, Rule

COORDINATOR_LOADS = 14


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_is_waited_for_while_a_member_has_records_to_read(link, unique, protocol):
    lab = link()
    lab.apply({0: 0}, partitions=1, records=20)
    group = f"{unique}-billing"
    member = Consumer(
        {**lab.east.client_settings(), "group.id": group, "group.protocol": protocol,
         "auto.offset.reset": "earliest", "enable.auto.commit": False}
    )  # fmt: skip
    member.subscribe([lab.topic])

    def reads(count):
        """The next records, committed."""
        read = [member.poll(30) for _ in range(count)]
        assert all(message is not None and message.error() is None for message in read), read
        member.commit(message=read[-1], asynchronous=False)

    reads(5)
    with lab.clusters() as clusters:
        move = GroupMove(clusters, clock=SystemClock())
        try:
            seen = move.round(commit=False)
            assert (seen.ready, seen.unread) == (False, {group: 15})
            reads(15)
            seen = move.round(commit=False)
            assert (seen.ready, seen.evidence()[group]["unread"]) == (True, 0)
            lab.write(lab.east, 3)
            assert move.round(commit=False).unread == {group: 3}
            member.close()  # nobody commits any more: what it has not read it reads over there
            wait_until(
                lambda: move.round(commit=False).ready, timeout_seconds=30, describe="an end of it"
            )
        finally:
            move.close()


@pytest.fixture
def loading(link):
    """The link, with a source that names no groups because their coordinator loads."""
    lab = link(fencing={"method": "manual"})
    lab.apply({0: 5}, partitions=1, records=5)
    rule = Rule(Match(Api.LIST_GROUPS, times=None), Answer(COORDINATOR_LOADS))
    with ProtocolProxy(lab.east.bootstrap_servers, [rule]) as proxy:
        clusters = tuple(
            replace(one, bootstrap_servers=tuple(proxy.bootstrap_servers))
            if one.alias == lab.east.name else one
            for one in lab.plan.clusters
        )  # fmt: skip
        lab.plan = replace(lab.plan, clusters=clusters)
        yield lab


@pytest.mark.slow
def test_a_failover_says_that_there_may_be_groups_which_it_does_not_see(loading):
    report = loading.run("failover", accept_loss=True)
    assert "loading" in evidence(report, "complete")["groupsNotSeen"]
    assert any("there may be other groups" in event.text for event in loading.events)
