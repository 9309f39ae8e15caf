"""What a broker says that may be behind the others is believed only where nothing speaks against it."""

import pytest

from replicator.dataplane.takeover.stale_answers import Answer, stale_answers, why_stale
from replicator.errors import UnreachableError
from replicator.topology.plan import ClusterPlan
from replicator.wire.requests.known_leaders import KnownLeader, KnownLeaders

PLACE = ("orders", 0)
SILENT = {"kafka-2:9092": UnreachableError("no answer")}


def known(*leaders, silent=None):
    told = {PLACE: {KnownLeader(*each) for each in leaders}} if leaders else {}
    return KnownLeaders(told, silent or {})


@pytest.mark.parametrize(
    ("answer", "brokers", "reason"),
    [
        (Answer("A", 3, "A", 3), known(("A", 3)), ""),
        (Answer("A", 3, "A", 2), known(("A", 3), ("A", 2)), ""),
        (Answer("A", 2, "A", 2), known(("A", 3), ("A", 2)), "another knows of epoch 3"),
        # A cluster that was restored: every broker says so.
        (Answer("A", 1, "A", 3), known(("A", 1)), ""),
        (Answer("A", 1, "A", 3), known(("A", 1), silent=SILENT), "kafka-2:9092 does not answer"),
        # Nothing was known that the answer would contradict.
        (Answer("A", 1), known(("A", 1), silent=SILENT), ""),
        # A topic that was made anew, known to all, and not yet.
        (Answer("B", 0, "A", 3), known(("B", 0)), ""),
        (Answer("B", 0, "A", 3), known(("B", 0), ("A", 3)), "others know A"),
        (Answer("A", 3, "A", 3), known(("B", 0), ("A", 3)), "others know B"),
        (Answer("B", 0, "A", 3), known(("B", 0), silent=SILENT), "does not answer"),
        # What a client heard, it may have heard of any of them.
        (Answer("A", 3, "A", 3, heard=True), known(("A", 3)), ""),
        (Answer("A", 3, "A", 3, heard=True), known(("A", 3), ("A", 2)), "disagree who leads it"),
        # Brokers that tell no epochs and no ids.
        (Answer("", -1, "", -1), known(("", -1)), ""),
        (Answer("A", 3, "A", 3), known(), ""),
    ],
)
def test_an_answer_is_stale_where_any_broker_knows_better(answer, brokers, reason):
    why = why_stale(PLACE, answer, brokers)
    assert reason in why
    assert bool(why) == bool(reason)


def test_an_earlier_leader_and_another_topic_go_back():
    assert Answer("A", 2, "A", 3).goes_back
    assert Answer("B", 5, "A", 3).goes_back
    assert not Answer("A", 3, "A", 3).goes_back
    assert not Answer("A", 4, "A", 3).goes_back
    assert not Answer("A", -1, "A", 3).goes_back, "a broker that tells no epochs"
    assert not Answer("A", 0).goes_back, "nothing was known"


def test_nothing_in_doubt_asks_nobody():
    assert stale_answers(ClusterPlan("west", ("127.0.0.1:1",)), {}, client_id="t") == {}
