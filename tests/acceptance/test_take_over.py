"""Two workers share the lanes; whatever happens to one, the other goes on with all of them."""

import pytest
from acceptance_worker import GRACE_SECONDS

from replicator.testing import wait_until
from replicator.testing.kit.waiting import NotInTimeError

FLOW = "east->west"
ALL_LANES = {0, 1, 2, 3}
TAKE_OVER_SECONDS = 12.0
"""The promise for a lost worker: the group's session time-out of 6 s, and the take-over."""

HAND_OVER_SECONDS = 6.0
"""A worker that leaves in order is replaced within 2 s; a busy machine gets three times that."""

ATTEMPTS = 3
"""Other tests run on the same cores: the best of so many has to keep a time."""


def test_lanes_of_a_lost_worker_move_again_in_time(east, west, scene):
    scene.active_passive(east, west)
    scene.writer(east)
    taken_over_within(scene, TAKE_OVER_SECONDS, lambda lost: lost.end())
    scene.settled()


def test_a_worker_that_is_told_to_stop_drains_and_hands_its_lanes_over(east, west, scene):
    scene.active_passive(east, west)
    scene.writer(east, rate=1_000)

    def drain(leaving) -> None:
        leaving.terminate()
        assert leaving.exit_code(timeout_seconds=GRACE_SECONDS) == 0
        assert not leaving.group_pids()

    taken_over_within(scene, HAND_OVER_SECONDS, drain)
    scene.settled()


@pytest.mark.slow
def test_the_only_worker_drains_and_the_next_goes_on_where_it_ended(east, west, scene):
    scene.active_passive(east, west)
    first = scene.worker()
    scene.writer(east, rate=1_000)
    scene.copying(FLOW)
    first.terminate()
    assert first.exit_code(timeout_seconds=GRACE_SECONDS) == 0
    assert not first.group_pids()
    scene.worker()
    scene.copying(FLOW)
    scene.settled()


@pytest.mark.parametrize(
    "delivery", ["exactly-once", pytest.param("at-least-once", marks=pytest.mark.slow)]
)
def test_a_worker_that_wakes_up_after_it_was_replaced_does_no_harm(east, west, scene, delivery):
    scene.active_passive(east, west, delivery=delivery)
    scene.guarantee = delivery
    zombie, survivor = two_workers_sharing(scene)
    scene.writer(east, rate=1_000)
    scene.copying(FLOW)
    zombie.pause()
    wait_until(
        lambda: scene.lanes(survivor, FLOW) == ALL_LANES,
        timeout_seconds=60.0,
        describe=lambda: f"all lanes with the survivor, it has {scene.lanes(survivor, FLOW)}",
    )
    scene.copying(FLOW)
    zombie.resume()
    wait_until(
        lambda: scene.lanes(zombie, FLOW),
        timeout_seconds=60.0,
        describe="the woken worker to be given lanes again",
    )
    scene.copying(FLOW)
    scene.settled()


def taken_over_within(scene, seconds, leave):
    """One of two workers leaves, again and again until all goes on in time; only the last may fail."""
    staying = scene.worker()
    for left in reversed(range(ATTEMPTS)):
        leaving, staying = two_workers_sharing(scene, staying)
        scene.copying(FLOW)
        leave(leaving)
        try:
            scene.past(FLOW, scene.source_ends(FLOW), timeout_seconds=seconds)
        except NotInTimeError:
            if not left:
                raise
        else:
            break
    wait_until(
        lambda: scene.lanes(staying, FLOW) == ALL_LANES,
        timeout_seconds=30.0,
        describe=lambda: f"all lanes with who stayed, it has {scene.lanes(staying, FLOW)}",
    )


def two_workers_sharing(scene, first=None):
    """Two workers of which each has some of the lanes; one of them may run already."""
    workers = first or scene.worker(), scene.worker()
    wait_until(
        lambda: all(scene.lanes(worker, FLOW) for worker in workers),
        timeout_seconds=60.0,
        describe="each worker to be given some of the lanes",
    )
    return workers
