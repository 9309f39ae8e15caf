"""A damaged batch at the source is never stepped over: its partition waits there and says so, others go on."""

from pathlib import Path

import pytest

BATCH_LENGTH, BATCH_MAGIC, BATCH_RECORDS = 10, 16, 80


class Segment:
    """The log segment of partition 0 of a topic, on the disk of the first broker."""

    def __init__(self, cluster, topic: str) -> None:
        self._file: Path = cluster.brokers[0].data / f"{topic}-0" / "00000000000000000000.log"

    def flip(self, batch: int, place: int) -> None:
        """Changes one byte of a batch; a second call changes it back."""
        data = self._file.read_bytes()
        start = 0
        for _ in range(batch):
            start += 12 + int.from_bytes(data[start + 8 : start + 12], "big")
        with self._file.open("r+b") as file:
            file.seek(start + place)
            file.write(bytes([data[start + place] ^ 0x15]))


def failure(lane, topic):
    found = lane.partition(topic)
    return None if found is None else found.failure


@pytest.mark.parametrize("place", [BATCH_MAGIC, BATCH_RECORDS], ids=["magic", "records"])
def test_a_damaged_batch_holds_its_partition_until_it_is_mended(lab, place):
    topic, other = lab.topic(), lab.topic()
    for start in range(0, 50, 10):
        lab.numbered(topic, range(start, start + 10))
    segment = Segment(lab.source, topic)
    segment.flip(2, place)
    lane = lab.lane(topic, other)
    lab.until(lambda: failure(lane, topic), "the failure", lane)
    lab.numbered(other, range(10))
    lab.caught_up(lane, other)

    assert failure(lane, topic).code == "SOURCE_DAMAGED"
    assert f"offset 20 of {topic}/0" in failure(lane, topic).detail
    assert lab.values(topic) == [b"%d" % n for n in range(20)]

    segment.flip(2, place)
    lab.caught_up(lane)
    assert lab.values(topic) == [b"%d" % n for n in range(50)]


@pytest.mark.slow
def test_a_batch_that_the_client_reads_for_ever_without_a_word_is_named(lab):
    topic, other = lab.topic(), lab.topic()
    lab.numbered(other, range(10))
    for start in range(0, 50, 10):
        lab.numbered(topic, range(start, start + 10))
    segment = Segment(lab.source, topic)
    segment.flip(2, BATCH_LENGTH)
    lane = lab.lane(topic, other)
    lab.until(lambda: failure(lane, topic), "the failure", lane)

    assert failure(lane, topic).code == "SOURCE_DAMAGED"
    assert "the source has records up to 50 and gives out none" in failure(lane, topic).detail
    assert lab.values(topic) == [b"%d" % n for n in range(20)]
    lab.caught_up(lane, other)

    segment.flip(2, BATCH_LENGTH)
    lab.caught_up(lane)
    assert lab.values(topic) == [b"%d" % n for n in range(50)]
