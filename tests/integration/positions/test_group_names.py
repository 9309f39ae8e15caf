"""Groups are listed anew when one comes or goes, and a list that may lack some says so."""

import pytest

from replicator.errors import TransientBrokerError, UnreachableError
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.offsets.translation.group_names import GroupNames
from replicator.testing import wait_until
from replicator.testing.faults.protocol_proxy import ProtocolProxy
from replicator.testing.faults.protocol_rules import Answer, Api, Match, NameNoBrokers, Rule
from replicator.topology.plan import ClusterPlan
from replicator.wire.groups.group_list import list_groups
from replicator.wire.groups.groups import Groups

LOADING = 14
NOT_NOW = (TransientBrokerError, UnreachableError)
"""Which of both the last answer was depends on how slow the machine is."""


def test_groups_that_come_and_go_are_seen(east, unique):
    plan = ClusterPlan(east.name, tuple(east.bootstrap_servers))
    with ClusterAdmin(plan, client_id="names", timeout_seconds=30) as admin:
        names = GroupNames(admin, client_id="names")
        for _ in range(3):
            assert names.read().names == admin.list_groups()
        assert unique not in names.read().names

        east.create_topic(unique)
        admin.commit_offsets({unique: {(unique, 0): (0, "")}})
        wait_until(
            lambda: unique in names.read().names, timeout_seconds=30, describe="a group that came"
        )
        assert names.read().names == admin.list_groups()

        admin.delete_groups([unique])
        wait_until(
            lambda: unique not in names.read().names,
            timeout_seconds=30,
            describe="a group that went",
        )
        assert names.read().names == admin.list_groups()
        names.close()


def test_a_coordinator_that_loads_is_asked_again_and_not_taken_for_one_without_groups(east, unique):
    east.create_topic(unique)
    with ProtocolProxy(east.bootstrap_servers) as proxy:
        plan = ClusterPlan(east.name, tuple(proxy.bootstrap_servers))
        with ClusterAdmin(plan, client_id="names", timeout_seconds=3) as admin:
            admin.commit_offsets({unique: {(unique, 0): (0, "")}})
            proxy.play([Rule(Match(Api.LIST_GROUPS, times=2), Answer(LOADING))])
            assert unique in admin.list_groups()
            proxy.play([Rule(Match(Api.LIST_GROUPS, times=None), Answer(LOADING))])
            names = GroupNames(admin, client_id="names")
            assert isinstance(names.read().unheard, NOT_NOW)
            with pytest.raises(NOT_NOW):
                admin.list_groups()
            proxy.play([])
            assert unique in names.read().names, "an incomplete list is not remembered"
            names.close()


def test_a_cluster_that_knows_of_no_live_broker_yet_is_asked_again(east, unique):
    first = Rule(Match(Api.METADATA, topic="__consumer_offsets", times=3), NameNoBrokers())
    with ProtocolProxy(east.bootstrap_servers, [first]) as proxy:
        plan = ClusterPlan(east.name, tuple(proxy.bootstrap_servers))
        listed = list_groups(plan, client_id="names", timeout_seconds=20)
        assert proxy.applied(first) == 3
    assert listed.unheard is None


@pytest.mark.slow
def test_groups_of_a_broker_that_is_silent_are_seen_once_they_have_another_coordinator(
    clusters, unique
):
    """A role change would leave them where they are, and nobody would know."""
    (east,) = clusters("east", brokers=3)
    east.create_topic(unique)
    groups = {f"{unique}.{number}" for number in range(12)}
    plan = ClusterPlan(east.name, tuple(east.bootstrap_servers))
    with ClusterAdmin(plan, client_id="names", timeout_seconds=60) as admin:
        told = admin.commit_offsets({group: {(unique, 0): (0, "")} for group in groups})
        assert {refused for each in told.values() for refused in each.values()} == {None}
        assert groups <= set(admin.list_groups())
        east.pause(2)
        try:
            assert groups <= set(admin.list_groups())
        finally:
            east.resume(2)


def test_answers_about_groups_are_kept_once_however_groups_come_and_go(east, unique):
    """Each new name moves those behind it into other requests; tools make up one for each run."""
    groups = Groups(ClusterPlan(east.name, tuple(east.bootstrap_servers)), client_id="names")
    names = [f"{unique}.{number:03d}" for number in range(250)]
    try:
        for first in range(20, -1, -1):
            told = groups.offsets.read(names[first:])
            assert told == {key: {} for key in names[first:]}
        kept = [name for asked in groups.offsets._last for name in asked]
        assert sorted(kept) == sorted(set(kept)) == names
        assert groups.offsets._asked_with.keys() == set(names)
    finally:
        groups.close()
