"""A lane that has had nothing to read for a while rests with others, and is there when it is needed."""

from replicator.testing import wait_until


def rested(lane) -> None:
    """Returns once the lane is in its process's room."""
    wait_until(
        lambda: lane.room.guests == 1, timeout_seconds=60, describe="a lane that has come to rest"
    )


def values(start: int, end: int) -> list[bytes]:
    return [b"%d" % number for number in range(start, end)]


def test_a_resting_lane_copies_what_comes_and_rests_again(lab):
    topic = lab.topic(partitions=2)
    lane = lab.lane(work=lab.work(topic))
    for turn in range(2):
        rested(lane)
        for partition in range(2):
            lab.numbered(topic, range(turn * 10, turn * 10 + 10), partition=partition)
        lab.caught_up(lane)

    for partition in range(2):
        copies = [seen.value for seen in lab.on_target(topic) if seen.partition == partition]
        assert copies == values(0, 20)


def test_a_resting_lane_takes_other_work_and_ends_when_told(lab):
    first, second = lab.topic(), lab.topic()
    lane = lab.lane(work=lab.work(first))
    rested(lane)
    lab.numbered(second, range(10))
    lane.update(work=(*lab.work(first), *lab.work(second)))
    lab.caught_up(lane)
    assert [seen.value for seen in lab.on_target(second)] == values(0, 10)

    rested(lane)
    assert lane.stop().reason == "stopped"
    assert lane.room.guests == 0
