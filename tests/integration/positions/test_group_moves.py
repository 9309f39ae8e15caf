"""Positions of groups in a role change, while workers sync them too."""

import threading
from dataclasses import replace

from replicator.clock import SystemClock
from replicator.failover.clusters.groups_move import GroupMove
from replicator.failover.clusters.link_clusters import LinkClusters
from replicator.testing import commit_positions, wait_until
from replicator.testing.faults.protocol_proxy import ProtocolProxy
from replicator.testing.faults.protocol_rules import Api, Hold, Match, Rule

LOOK_BEFORE_THE_COMMIT = Rule(Match(Api.OFFSET_FETCH, nth=2), Hold(reset=False))


def moved(pair, replicating, rule):
    """A role change's round, while a worker sets an older position as the rule holds the round up.

    Returns what the round saw, the group's name, and each record's place on west.
    """
    plan = pair.topology(groups={"include": [f"{pair.name}*"]})
    pair.east.create_topic(pair.topic)
    pair.write(pair.east, 90)
    replicating(expect={(pair.west, pair.topic, 0): 90})
    log, _ = pair.log_of(pair.west)
    own = {int(last.rsplit("/", 1)[1]): at for at, last in log if last is not None}
    group, place = f"{pair.name}-billing", (pair.topic, 0)
    commit_positions(pair.east, group, {place: 60})
    commit_positions(pair.west, group, {place: own[30]})
    with ProtocolProxy(pair.west.bootstrap_servers, [rule]) as proxy:
        clusters = tuple(
            replace(one, bootstrap_servers=tuple(proxy.bootstrap_servers))
            if one.alias == "west"
            else one
            for one in plan.clusters
        )
        plan = replace(plan, clusters=clusters)
        ends = plan.cluster("east"), plan.cluster("west")
        with LinkClusters(plan, plan.link("orders"), *ends) as linked:
            move, seen = GroupMove(linked, clock=SystemClock()), []
            round_ = threading.Thread(target=lambda: seen.append(move.round(commit=True)))
            round_.start()
            try:
                wait_until(
                    lambda: proxy.applied(rule), timeout_seconds=30, describe="the round to be held"
                )
                commit_positions(pair.west, group, {place: own[45]})
            finally:
                proxy.release()
                round_.join()
                move.close()
    return seen[0], group, own


def test_a_position_that_a_worker_set_before_the_commit_is_set_again(pair, replicating):
    seen, group, own = moved(pair, replicating, LOOK_BEFORE_THE_COMMIT)
    assert pair.committed(pair.west, group)[0] == own[60]
    assert seen.ready
    found = seen.evidence()[group]
    assert (found["state"], found["reread"], found["grades"]) == ("synced", 0, ["exact"])


def test_a_position_that_goes_on_being_set_is_not_ready(pair, replicating, monkeypatch):
    monkeypatch.setattr("replicator.failover.clusters.groups_move._LOOKS", 0)
    seen, group, own = moved(pair, replicating, LOOK_BEFORE_THE_COMMIT)
    assert pair.committed(pair.west, group)[0] == own[45]
    assert not seen.ready
    assert group in seen.waits_for
