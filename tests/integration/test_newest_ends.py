"""Where logs end by their newest leader, asked beside a lane: over connections that are kept, and may be gone."""

import contextlib

import pytest
from producing import produce

from replicator.dataplane.health import newest_ends
from replicator.dataplane.health.newest_ends import NewestEnds
from replicator.errors import UnreachableError
from replicator.testing import wait_until
from replicator.topology.plan import ClusterPlan


@pytest.fixture
def asking(proxied):
    plan = ClusterPlan("west", tuple(proxied.bootstrap_servers))
    with contextlib.closing(NewestEnds(plan, client_id="ends")) as asking:
        yield asking


def answer(asking, *places):
    asking.ask(places)
    wait_until(lambda: asking.over, timeout_seconds=30, describe="an answer")
    return asking.take()


def test_connections_that_are_gone_are_made_anew(proxied, unique, asking):
    proxied.create_topic(unique)
    produce(proxied, unique, [b"one", b"two"])
    assert answer(asking, (unique, 0), (f"no-{unique}", 0)) == {(unique, 0): 2}
    proxied.proxy.cut()
    proxied.proxy.heal()
    produce(proxied, unique, [b"three"])
    assert answer(asking, (unique, 0)) == {(unique, 0): 3}


def test_a_cluster_that_says_nothing_is_told_and_the_next_question_is_answered(
    proxied, unique, asking, monkeypatch
):
    proxied.create_topic(unique)
    with monkeypatch.context() as patch:
        patch.setattr(newest_ends, "_ANSWER_SECONDS", 1.0)
        proxied.proxy.black_hole()
        with pytest.raises(UnreachableError):
            answer(asking, (unique, 0))
    proxied.proxy.heal()
    assert answer(asking, (unique, 0)) == {(unique, 0): 0}
