import threading

from replicator.observability.health import (
    CanaryHealth,
    ClusterHealth,
    Liveness,
    PairHealth,
    ReadinessFacts,
    readiness,
)
from replicator.testing.kit.manual_clock import ManualClock
from replicator.wiring.thread_deaths import ThreadDeaths

EAST = ClusterHealth("east", reachable=True)
PAIR = PairHealth("east->west", joined=True, lanes_assigned=2, lanes_running=2)


def test_a_process_without_loops_is_alive():
    assert Liveness(clock=ManualClock()).verdict().ok


def test_alive_while_every_loop_beats_within_its_limit():
    clock = ManualClock()
    liveness = Liveness(clock=clock)
    liveness.start("discovery", limit_seconds=10)
    liveness.start("supervisor", limit_seconds=3)
    clock.sleep(3)
    assert liveness.verdict().ok
    liveness.beat("supervisor")
    clock.sleep(3)
    assert liveness.verdict().ok


def test_a_silent_loop_is_named_with_its_limit():
    clock = ManualClock()
    liveness = Liveness(clock=clock)
    liveness.start("discovery", limit_seconds=10)
    liveness.start("supervisor", limit_seconds=3)
    clock.sleep(5)
    verdict = liveness.verdict()
    assert not verdict.ok
    assert verdict.reasons == ("loop 'supervisor' last ran 5.0 s ago, limit 3 s",)


def test_a_loop_that_ended_on_purpose_is_not_missed():
    clock = ManualClock()
    liveness = Liveness(clock=clock)
    liveness.start("discovery", limit_seconds=10)
    liveness.stop("discovery")
    liveness.beat("discovery")
    clock.sleep(100)
    assert liveness.verdict().ok


def test_ready_when_clusters_answer_and_assigned_lanes_run():
    assert readiness(ReadinessFacts(clusters=[EAST], pairs=[PAIR])).ok


def test_a_worker_in_reserve_is_ready():
    reserve = PairHealth("east->west", joined=True, lanes_assigned=0, lanes_running=0)
    assert readiness(ReadinessFacts(clusters=[EAST], pairs=[reserve])).ok


def test_every_reason_is_given_at_once():
    verdict = readiness(
        ReadinessFacts(
            clusters=[EAST, ClusterHealth("west", reachable=False, detail="timed out")],
            pairs=[
                PairHealth("east->west", joined=True, lanes_assigned=4, lanes_running=1),
                PairHealth("west->east", joined=False, lanes_assigned=0, lanes_running=0),
            ],
            draining=True,
        )
    )
    assert not verdict.ok
    assert verdict.reasons == (
        "the worker is draining",
        "cluster 'west' cannot be reached: timed out",
        "east->west: 1 of 4 assigned lanes run",
        "west->east: lanes are not assigned yet",
    )


def test_canaries_are_reported_and_decide_nothing():
    verdict = readiness(
        ReadinessFacts(
            clusters=[EAST],
            pairs=[PAIR],
            canaries=[
                CanaryHealth("east->west", "dr", 0.4, 0.0213, lost=0),
                CanaryHealth("east->west", "slow", 90.0, 29.5, lost=60),
                CanaryHealth("east->west", "new", None, 0.0, lost=0),
            ],
        )
    )
    assert verdict.ok
    assert verdict.details == (
        "east->west dr: canary last came 0.4 s ago after 0.021 s, 0 lost",
        "east->west slow: canary last came 90.0 s ago after 29.500 s, 60 lost",
        "east->west new: canary none came yet, 0 lost",
    )


def test_a_thread_that_an_error_ended_is_missed_until_another_has_its_place():
    deaths = ThreadDeaths()
    liveness = Liveness(clock=ManualClock(), deaths=deaths.standing)

    def dies():
        raise ValueError("no such thing")

    before, threading.excepthook = threading.excepthook, deaths.note
    try:
        ended = threading.Thread(target=dies, name="roles")
        ended.start()
        ended.join()
    finally:
        threading.excepthook = before
    words = "thread 'roles' ended by an error: ValueError('no such thing')"
    assert liveness.verdict().reasons == (words,)
    assert readiness(ReadinessFacts([], [], missing=deaths.standing())).reasons == (words,)

    done = threading.Event()
    successor = threading.Thread(target=done.wait, name="roles")
    successor.start()
    assert liveness.verdict().ok
    done.set()
    successor.join()
