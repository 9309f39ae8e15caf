"""What a worker tells of lanes that copy otherwise than their orders say."""

from dataclasses import replace

from replicator.control.store.worker_record import lane_problems, told_at_once
from replicator.control.worker.rate_meter import RateMeter
from replicator.dataplane.health.connection_problems import ConnectionProblems
from replicator.errors import NotAuthorizedError
from replicator.formats.lane_stats import LaneStats

WHOLE = LaneStats(pair="east->west", link="orders", lane=0, state="running", reason="copying")
SINGLE = replace(WHOLE, lane=1, records_reason="new-id")


def test_a_worker_tells_why_one_of_its_lanes_copies_record_by_record():
    other = replace(WHOLE, link="other")
    rates = {rate.link: rate for rate in RateMeter().rates((WHOLE, SINGLE, other), now=1.0)}
    assert rates["orders"].records_reason == "new-id"
    assert rates["other"].records_reason == ""


def test_how_lanes_copy_is_told_at_once_where_it_changes():
    assert told_at_once((WHOLE,)) == told_at_once(())
    assert told_at_once((WHOLE, SINGLE)) != told_at_once((WHOLE,))
    refused = replace(SINGLE, records_reason="no-clients")
    assert told_at_once((WHOLE, refused)) != told_at_once((WHOLE, SINGLE))


def test_clients_that_cannot_be_opened_are_a_problem_of_their_cluster_until_they_can():
    problems = ConnectionProblems(source="east", target="west")
    refused = NotAuthorizedError("no right to it", subject="cluster:east", remedy="Grant it.")
    assert problems.not_opened(refused)
    assert not problems.not_opened(refused), "it is known"
    assert not problems.any(), "the lane copies"
    source, target = problems.opening
    (problem,) = lane_problems(replace(WHOLE, source_opening=source, target_opening=target))
    assert (problem.code, problem.subject) == ("NOT_AUTHORIZED", "cluster:east")
    assert problem.detail.endswith("goes on with those it has: no right to it")
    assert problem.remedy == "Grant it."
    assert problems.not_opened(
        NotAuthorizedError("nor here", subject="cluster:west", remedy="Grant it.")
    )
    assert problems.opening[0] == "", "one is tried at a time"
    problems.opened()
    assert problems.opening == ("", "")
