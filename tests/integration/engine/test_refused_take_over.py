"""A lane whose target refuses that it takes over says so at once, and goes on when it may."""

import pytest
from proxied_lab import ProxiedLab

from replicator.control.store.worker_record import lane_problems
from replicator.testing import ProtocolProxy
from replicator.testing.faults.protocol_rules import Answer, Api, Match, Rule

NOT_AUTHORIZED = 53
ENGINES = pytest.mark.parametrize(
    "engine", [{}, {"engine": "batches", "provenance": "path"}], ids=["records", "batches"]
)


@ENGINES
@pytest.mark.parametrize("asked", [Api.FIND_COORDINATOR, Api.INIT_PRODUCER_ID])
def test_a_missing_right_to_the_transactional_id_is_named_and_not_asked_for_without_end(
    east, west, unique, engine, asked
):
    refused = Rule(Match(asked, times=None), Answer(NOT_AUTHORIZED))
    with ProtocolProxy(west.bootstrap_servers, [refused]) as proxy:
        lab = ProxiedLab(east, west, name=unique).through(proxy)
        topic = lab.topic()
        lab.numbered(topic, range(10))
        running = lab.lane(topic, **engine)
        try:
            lab.until(lambda: running.stats.state == "recovering", "the refusal", running)
            (problem,) = lane_problems(running.stats)
            assert (problem.code, problem.subject) == ("NOT_AUTHORIZED", "cluster:west")
            assert problem.remedy
            lab.until(lambda: running.stats.aborts >= 3, "further tries", running)
            assert proxy.applied(refused) <= 2 * running.stats.aborts + 2
            assert [each.code for each in lane_problems(running.stats)] == ["NOT_AUTHORIZED"]
            proxy.play([])
            lab.caught_up(running)
            assert lane_problems(running.stats) == []
        finally:
            lab.close()
