"""`replicator check`: when a set of running workers is proven to do its work."""

from replicator.observability.release_health import WorkerAnswer, release_health

LINK = {"link": "orders", "flow": "east->west"}


def worker(*, came=0, lost=0, paused=0, reasons=(), address="10.0.0.1:8080"):
    samples = (
        ("replicator_flow_state", {**LINK, "state": "paused"}, float(paused)),
        ("replicator_canary_roundtrip_seconds_count", LINK, float(came)),
        ("replicator_canary_lost_total", LINK, float(lost)),
    )
    return WorkerAnswer(address, tuple(reasons), samples)


def test_a_canary_that_came_since_the_first_look_proves_a_link():
    before, after = worker(came=5), worker(came=6)
    assert release_health([before], [before]).waiting_for == (
        "east->west orders: no canary came through yet",
    )
    assert release_health([before], [after]).waiting_for == ()


def test_a_canary_lost_since_the_first_look_is_a_failure_and_an_older_one_is_not():
    before = worker(came=5, lost=2)
    assert release_health([before], [worker(came=9, lost=2)]).waiting_for == ()
    health = release_health([before], [worker(came=9, lost=3)])
    assert [link.lost for link in health.lost] == [1]
    assert health.waiting_for == ("east->west orders: 1 canaries lost",)


def test_it_is_enough_that_one_worker_saw_the_canary():
    first = [worker(came=5), worker(address="10.0.0.2:8080")]
    latest = [worker(came=5), worker(came=1, address="10.0.0.2:8080")]
    assert release_health(first, latest).waiting_for == ()


def test_a_worker_that_is_not_ready_is_named_with_its_reasons():
    waiting = release_health([], [worker(came=1, reasons=("the worker is draining",))]).waiting_for
    assert waiting == ("10.0.0.1:8080 is not ready: the worker is draining",)


def test_a_paused_link_needs_no_canary():
    assert release_health([worker()], [worker(paused=1)]).waiting_for == ()


def test_no_answer_and_nothing_served_prove_nothing():
    assert release_health([], []).waiting_for == ("no worker answers",)
    idle = WorkerAnswer("10.0.0.1:8080", ())
    assert release_health([idle], [idle]).waiting_for == ("no worker serves a flow",)
