"""An idle lane is polled together with the others of its process, and copies again when it has to."""

import pytest

from replicator.dataplane.progress import pacing
from replicator.testing import wait_until


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    """Lanes are idle after a second instead of ten."""
    monkeypatch.setattr(pacing, "IDLE_AFTER_SECONDS", 1.0)


def idle(lane) -> None:
    """Returns once the idle poller has the lane."""
    wait_until(
        lambda: len(lane.idle_poller._idle_lanes) == 1,
        timeout_seconds=60,
        describe="an idle lane",
    )


def values(start: int, end: int) -> list[bytes]:
    return [b"%d" % number for number in range(start, end)]


def test_an_idle_lane_copies_what_comes_and_is_idle_again(lab):
    topic = lab.topic(partitions=2)
    lane = lab.lane(work=lab.work(topic))
    for turn in range(2):
        idle(lane)
        for partition in range(2):
            lab.numbered(topic, range(turn * 10, turn * 10 + 10), partition=partition)
        lab.caught_up(lane)

    for partition in range(2):
        copies = [seen.value for seen in lab.on_target(topic) if seen.partition == partition]
        assert copies == values(0, 20)


def test_an_idle_lane_takes_other_work_and_stops_on_request(lab):
    first, second = lab.topic(), lab.topic()
    lane = lab.lane(work=lab.work(first))
    idle(lane)
    lab.numbered(second, range(10))
    lane.update(work=(*lab.work(first), *lab.work(second)))
    lab.caught_up(lane)
    assert [seen.value for seen in lab.on_target(second)] == values(0, 10)

    idle(lane)
    assert lane.stop().reason == "stopped"
    assert not lane.idle_poller._idle_lanes
