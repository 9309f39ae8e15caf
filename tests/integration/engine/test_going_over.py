"""While a lane goes over from records to whole batches: what it copies, and what it tells."""

import pytest
from proxied_lab import ProxiedLab

from replicator.control.store.worker_record import lane_problems
from replicator.testing import ProtocolProxy
from replicator.testing.faults.protocol_rules import Answer, Api, Match, Rule

BATCHES = {"engine": "batches", "provenance": "path"}
NOT_AUTHORIZED = 53
AGAIN = "the lane copies whole batches"
KEPT = "new clients cannot be opened, the lane goes on with those it has"


@pytest.fixture
def proxy(west):
    with ProtocolProxy(west.bootstrap_servers) as proxy:
        yield proxy


@pytest.fixture
def going_over(east, west, unique, proxy):
    """A lane that copied record by record, and since a moment ago has orders to copy whole batches."""
    lab = ProxiedLab(east, west, name=unique).through(proxy)
    topic = lab.topic(target={"max.message.bytes": "20000"})
    work = lab.work(topic)  # of which the lane knows no limit: the target refuses
    lab.numbered(topic, range(100))
    running = lab.lane(work=work)
    lab.caught_up(running)
    running.stop()
    proxy.play([])
    running = lab.lane(work=work, **BATCHES)
    lab.until(lambda: reason(running) == "new-id", "the lane to go over", running)
    yield lab, topic, running
    lab.close()


def refusal_of_whole_batches(proxy):
    """Refuses clients of whole batches only: the client library's may ask for the coordinator again half a second
    after it has one, and is lost when that is refused. Its requests are of an older version."""
    asked = [each.version for each in proxy.requests if each.api == Api.FIND_COORDINATOR]
    older, ours = min(asked), max(asked)
    assert older < ours, f"the client library asks as ours does: {asked}"
    only_ours = Match(Api.FIND_COORDINATOR, times=None, from_version=ours)
    return Rule(only_ours, Answer(NOT_AUTHORIZED))


def reason(running):
    return running.stats.records_reason


def said(running, event):
    return [line for line in running.log if line.event == event]


def test_a_lane_goes_on_by_records_where_clients_of_whole_batches_are_refused_and_tells_it(
    going_over, proxy
):
    lab, topic, running = going_over
    written = 100

    def while_it_copies(condition):
        """The condition, with a record more at each look: a lane that rests looks around every 5 s."""
        nonlocal written
        lab.numbered(topic, [written])
        written += 1
        return condition()

    assert lane_problems(running.stats) == []
    refused = refusal_of_whole_batches(proxy)
    proxy.play([refused])
    lab.until(
        lambda: while_it_copies(lambda: reason(running) == "no-clients"), "the refusal", running
    )
    lab.until(lambda: while_it_copies(lambda: proxy.applied(refused) >= 2), "another try", running)
    (problem,) = lane_problems(running.stats)
    assert (problem.code, problem.subject) == ("NOT_AUTHORIZED", "cluster:west")
    assert problem.detail.startswith(KEPT)
    assert problem.remedy
    assert len(said(running, KEPT)) == 1
    lab.caught_up(running)
    assert running.stats.state == "running"
    assert said(running, AGAIN) == []
    singly = written

    proxy.play([])
    running.until_whole()
    assert len(said(running, AGAIN)) == 1
    assert lane_problems(running.stats) == []
    lab.numbered(topic, range(written, written + 100))
    lab.caught_up(running)
    copies = lab.on_target(topic)
    assert [int(seen.value) for seen in copies] == list(range(written + 100))
    assert [int(seen.value) for seen in copies if seen.headers] == list(range(singly))


@pytest.mark.slow
def test_a_record_that_is_refused_while_a_lane_goes_over_is_set_aside_and_it_goes_on(going_over):
    lab, topic, running = going_over
    lab.produce(topic, {"value": bytes(50_000)})
    lab.numbered(topic, range(100, 200))
    lab.caught_up(running)
    assert running.stats.quarantined == 1
    assert reason(running) in {"new-id", "refused-record"}
    running.until_whole()
    lab.numbered(topic, range(200, 300))
    lab.caught_up(running)
    running.stop()
    assert [int(seen.value) for seen in lab.on_target(topic)] == list(range(300))
    assert [len(seen.value) for seen, _ in lab.quarantined()] == [50_000]


@pytest.mark.slow
def test_a_lane_that_moves_while_it_goes_over_begins_to_wait_again_and_loses_nothing(going_over):
    lab, topic, running = going_over
    lab.numbered(topic, range(100, 200))
    lab.caught_up(running)
    running.stop()
    elsewhere = lab.lane(work=running.spec.work, **BATCHES)
    lab.numbered(topic, range(200, 300))
    lab.caught_up(elsewhere)
    assert reason(elsewhere) == "new-id", "no whole batch was sent yet"
    elsewhere.until_whole()
    lab.numbered(topic, range(300, 400))
    lab.caught_up(elsewhere)
    copies = lab.on_target(topic)
    assert [int(seen.value) for seen in copies] == list(range(400))
    assert [int(seen.value) for seen in copies if seen.headers] == list(range(300))
