"""A damaged batch at the source is never stepped over: its partition waits there and says so, others go on."""

import time
from pathlib import Path

import pytest
from lane_lab import LaneLab, numbers

from replicator.batches.registry.unreadable import unreadable_at
from replicator.policy.values import Throttle

ENGINES = pytest.mark.parametrize(
    "engine", [{}, {"engine": "batches", "provenance": "path"}], ids=["records", "batches"]
)
BATCH_LENGTH, BATCH_MAGIC, BATCH_RECORDS = 10, 16, 80


class Segment:
    """The log segment of partition 0 of a topic, on the disk of the first broker."""

    def __init__(self, cluster, topic: str) -> None:
        self._file: Path = cluster.brokers[0].data / f"{topic}-0" / "00000000000000000000.log"

    def flip(self, batch: int, place: int) -> None:
        """Changes one byte of a batch of ten records; a second call changes it back."""
        data = self._file.read_bytes()
        start = 0
        for _ in range(batch):
            start += 12 + int.from_bytes(data[start + 8 : start + 12], "big")
        assert int.from_bytes(data[start : start + 8], "big") == 10 * batch
        with self._file.open("r+b") as file:
            file.seek(start + place)
            file.write(bytes([data[start + place] ^ 0x15]))


def write_batch(lab, topic: str, numbers: range) -> None:
    """Numbered records in one batch: nothing is sent before all of them are there, and a flush asks for it."""
    lab.produce(topic, *({"value": b"%d" % n} for n in numbers), **{"linger.ms": 60_000})


def failure(lane, topic):
    found = lane.partition(topic)
    return None if found is None else found.failure


def is_damaged(lane, topic) -> bool:
    found = failure(lane, topic)
    return found is not None and found.code == "SOURCE_DAMAGED"


@pytest.mark.parametrize("place", [BATCH_MAGIC, BATCH_RECORDS], ids=["magic", "records"])
def test_a_damaged_batch_holds_its_partition_until_it_is_repaired(lab, place):
    topic, other = lab.topic(), lab.topic()
    for start in range(0, 50, 10):
        write_batch(lab, topic, range(start, start + 10))
    segment = Segment(lab.source, topic)
    segment.flip(2, place)
    lane = lab.lane(topic, other)
    lab.until(lambda: is_damaged(lane, topic), "the failure", lane)
    lab.numbered(other, range(10))
    lab.caught_up(lane, other)

    assert is_damaged(lane, topic)
    assert f"offset 20 of {topic}/0" in failure(lane, topic).detail
    assert lab.values(topic) == [b"%d" % n for n in range(20)]

    segment.flip(2, place)
    lab.caught_up(lane)
    assert lab.values(topic) == [b"%d" % n for n in range(50)]


@pytest.mark.slow
@ENGINES
def test_a_batch_that_the_client_reads_for_ever_without_an_error_is_named(lab, engine):
    topic, other = lab.topic(), lab.topic()
    lab.numbered(other, range(10))
    for start in range(0, 50, 10):
        write_batch(lab, topic, range(start, start + 10))
    segment = Segment(lab.source, topic)
    segment.flip(2, BATCH_LENGTH)
    lane = lab.lane(topic, other, **engine)
    # On a busy machine the question what stands there may go without an answer first.
    lab.until(lambda: is_damaged(lane, topic), "the failure", lane)

    assert "offset 20 of" in failure(lane, topic).detail
    assert lab.values(topic) == [b"%d" % n for n in range(20)]
    lab.caught_up(lane, other)

    segment.flip(2, BATCH_LENGTH)
    lab.caught_up(lane)
    assert lab.values(topic) == [b"%d" % n for n in range(50)]


@pytest.mark.slow
@ENGINES
def test_a_lane_with_a_throttle_that_could_read_more_names_what_stands_still(lab, engine):
    topic, other = lab.topic(), lab.topic()
    for start in range(0, 50, 10):
        write_batch(lab, topic, range(start, start + 10))
    Segment(lab.source, topic).flip(2, BATCH_LENGTH)
    lane = lab.lane(topic, other, throttle=Throttle(records_per_second=50), **engine)
    written, due = 0, time.monotonic()

    def named_while_the_other_uses_up_its_rate():
        nonlocal written, due
        if time.monotonic() >= due:
            due = time.monotonic() + 1.0
            lab.numbered(other, range(written, written + 20))
            written += 20
        return is_damaged(lane, topic)

    lab.until(named_while_the_other_uses_up_its_rate, "the failure", lane)
    assert lane.stats.throttle_wait_seconds > 0
    lab.caught_up(lane, other)
    assert lab.values(other) == numbers(range(written))


@pytest.mark.slow
@ENGINES
def test_beside_a_backlog_that_a_rate_makes_last_a_damaged_batch_is_named_all_the_same(lab, engine):
    topic, other = lab.topic(), lab.topic()
    for start in range(0, 50, 10):
        write_batch(lab, topic, range(start, start + 10))
    # The first one: with whole ones before it, it may be the backlog's turn for minutes, and nobody stands at the damage.
    Segment(lab.source, topic).flip(0, BATCH_LENGTH)
    small = {"batch.num.messages": 10}  # a batch is never divided for a rate
    lab.produce(other, *({"value": b"%d" % n} for n in range(30_000)), **small)
    lane = lab.lane(topic, other, throttle=Throttle(records_per_second=50), **engine)
    # On a busy machine the source may answer too late at first, and that is what is told then.
    lab.until(lambda: is_damaged(lane, topic), "the failure", lane)
    assert failure(lane, other) is None
    assert lane.partition(other).position < 30_000


@pytest.mark.slow
@ENGINES
def test_a_lane_without_a_share_of_the_throttle_is_named_until_it_has_one(lab, engine):
    topic = lab.topic()
    lab.numbered(topic, range(10))
    lane = lab.lane(topic, throttle=Throttle(records_per_second=0), **engine)
    # What is read at once is paid for later, which is never here.
    lab.until(lambda: lab.values(topic), "the first records", lane)
    lab.numbered(topic, range(10, 20))
    found = lab.until(lambda: failure(lane, topic), "the failure", lane)
    assert found.code == "NOT_MOVING"
    assert "has no share of the flow's throttle" in found.detail
    lane.update(throttle=Throttle(records_per_second=100))
    lab.caught_up(lane)
    lab.until(lambda: failure(lane, topic) is None, "the failure to end", lane)
    assert lab.values(topic) == numbers(range(20))


def given_up(lab, topic: str, position: int) -> tuple[int, int]:
    found = unreadable_at(lab.plan(lab.source, "east"), (topic, 0), position, client_id="lab")
    assert found is not None
    return found.start, found.end


@ENGINES
def test_what_cannot_be_read_is_given_up_by_an_operator_and_no_more(lab, engine):
    topic = lab.topic()
    for start in range(0, 60, 10):
        write_batch(lab, topic, range(start, start + 10))
    segment = Segment(lab.source, topic)
    segment.flip(2, BATCH_RECORDS)
    segment.flip(3, BATCH_MAGIC)
    lane = lab.lane(topic, **engine)
    lab.until(lambda: failure(lane, topic), "the failure", lane)

    assert unreadable_at(lab.plan(lab.source, "east"), (topic, 0), 0, client_id="lab") is None
    assert given_up(lab, topic, 20) == (20, 40)
    lane.update(work=lab.work(topic, accept_gap="t", unreadable=(20, 40)))
    lab.caught_up(lane)

    assert lab.values(topic) == numbers(range(20), range(40, 60))
    assert [(gap.lost_from, gap.lost_to) for gap in lane.gaps] == [(20, 40)]
    assert "offsets 20 to 39 cannot be read" in lane.gaps[0].detail
    lab.until(lambda: failure(lane, topic) is None, "the end of the failure", lane)
    lane.stop()
    lane = lab.lane(work=lab.work(topic, accept_gap="t", unreadable=(20, 40)), **engine)
    lab.numbered(topic, range(60, 70))
    lab.caught_up(lane)
    assert lab.values(topic) == numbers(range(20), range(40, 70))
    assert not lane.gaps


@pytest.mark.slow
@ENGINES
def test_behind_a_wrong_length_reading_goes_on_where_the_source_can(lab, engine):
    """The broker's own index of the log leads past it, where there is an entry behind."""
    topic = lab.topic(source={"index.interval.bytes": "0"})
    for start in range(0, 50, 10):
        write_batch(lab, topic, range(start, start + 10))
    Segment(lab.source, topic).flip(2, BATCH_LENGTH)
    lane = lab.lane(topic, **engine)
    lab.until(lambda: failure(lane, topic), "the failure", lane)
    start, end = given_up(lab, topic, 20)
    assert start == 20
    lane.update(work=lab.work(topic, accept_gap="t", unreadable=(start, end)))
    lab.caught_up(lane)

    assert lab.values(topic) == numbers(range(20), range(end, 50))
    assert end <= 40


@pytest.mark.slow
def test_an_operator_sees_what_is_given_up_and_it_stays_on_record(east, west, unique, worker):
    topic = f"{unique}.t"
    east.create_topic(topic)
    worker.cluster(east)
    worker.cluster(west)
    worker.link("link", "east", "west", [topic])
    lab = LaneLab(east, west, name=unique, prepared=True)
    for start in range(0, 50, 10):
        write_batch(lab, topic, range(start, start + 10))
    Segment(east, topic).flip(2, BATCH_RECORDS)
    worker.start()
    place = ["--flow", "east->west", "--topic", topic, "--partition", "0"]
    said = f"replicator resume --flow 'east->west' --topic {topic} --partition 0 --accept-gap"

    def remedy() -> str:
        return worker.problems("east->west").get("SOURCE_DAMAGED", {}).get("remedy", "")

    worker.until(lambda: remedy().endswith(said), "the problem with what to do")
    told = worker.command("resume", *place, "--accept-gap", "--dry-run")
    assert [(gap["from"], gap["to"]) for gap in told["gaps"]] == [(20, 30)]
    assert "a record batch has a wrong checksum" in told["gaps"][0]["detail"]
    assert lab.values(topic) == numbers(range(20))

    done = worker.command("resume", *place, "--accept-gap")
    assert (told["dryRun"], done["dryRun"]) == (True, False)
    worker.until(
        lambda: lab.values(topic) == numbers(range(20), range(30, 50)), "what stands behind it"
    )
    worker.until(lambda: worker.command("gaps")["gaps"], "the gap on record")
    (gap,) = worker.command("gaps")["gaps"]
    assert (gap["topic"], gap["from"], gap["to"]) == (topic, 20, 30)
    assert "@" in gap["by"]
    worker.until(lambda: "SOURCE_DAMAGED" not in worker.problems("east->west"), "its end")
