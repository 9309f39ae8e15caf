"""Gaps that were given up: written down however long the target is silent, and shown by a command."""

import pytest

from replicator.control.status.gaps import list_gaps
from replicator.control.store.gap_journal import GapJournal
from replicator.dataplane.transport.messages import LostRange
from replicator.identifiers import control_topic
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.kafka.logs.compacted_topic import ensure_compacted_topic
from replicator.policy.values import LinkPolicy, Selection
from replicator.testing import LocalCluster, wait_until
from replicator.testing.kit.manual_clock import ManualClock
from replicator.testing.kit.waiting import NotInTimeError
from replicator.topology.plan import ClusterPlan, FlowPlan, LinkPlan, Plan


def make_plan(name: str, west: LocalCluster) -> Plan:
    flow = FlowPlan("link", "east", "west", LinkPolicy(Selection(("*",)), Selection()), ("west",))
    clusters = (
        ClusterPlan("east", ("127.0.0.1:1",)),
        ClusterPlan("west", tuple(west.bootstrap_servers)),
    )
    link = LinkPlan("link", "active-passive", ("east", "west"), "east", None, (flow,))
    plan = Plan(name, clusters, (link,), "hash")
    with ClusterAdmin(plan.cluster("west"), client_id="test") as admin:
        ensure_compacted_topic(admin, control_topic(name), partitions=1)
    return plan


def lost(start: int, end: int) -> LostRange:
    return LostRange("east->west", "link", "orders", 0, start, end, f"gap accepted: {start}")


def shown(plan: Plan):
    return [(gap["topic"], gap["from"], gap["to"]) for gap in list_gaps(plan)["gaps"]]


def test_gaps_given_up_by_policy_are_shown_newest_first(west, unique):
    plan = make_plan(unique, west)
    assert list_gaps(plan) == {"gaps": [], "problems": []}
    clock = ManualClock()
    journal = GapJournal(clock=clock)
    journal.note(plan, lost(0, 5))
    wait_until(lambda: shown(plan), timeout_seconds=30, describe="the first gap")
    clock.advance(60)
    journal.note(plan, lost(7, 9))
    journal.close()
    found = list_gaps(plan, flow="east->west")["gaps"]
    assert shown(plan) == [("orders", 7, 9), ("orders", 0, 5)]
    assert (found[0]["by"], found[0]["detail"]) == ("", "gap accepted: 7")
    assert found[0]["at"] == "2023-11-14T22:14:20+00:00"


@pytest.mark.slow
def test_a_gap_is_written_however_long_the_target_is_silent(clusters, unique):
    (west,) = clusters("west", proxied=True)
    plan = make_plan(unique, west)
    journal = GapJournal(clock=ManualClock())
    west.proxy.black_hole()
    journal.note(plan, lost(0, 5))
    with pytest.raises(NotInTimeError):  # longer than one attempt lasts
        wait_until(lambda: not journal._thread.is_alive(), timeout_seconds=20, describe="its end")
    west.proxy.heal()
    wait_until(lambda: shown(plan), timeout_seconds=60, describe="the gap")
    journal.close()
    assert shown(plan) == [("orders", 0, 5)]
