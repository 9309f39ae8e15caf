"""Records that are larger than what may wait for the target, because the lane's part of the memory is small."""

import pytest

from replicator.policy.capacity.memory_shares import LEAST_UNSENT_BYTES, MemoryShare

HUGE = b"x" * (LEAST_UNSENT_BYTES + 2_000_000)
COMPRESSED = {"compression.type": "zstd", "message.max.bytes": 10_000_000}


@pytest.mark.parametrize("delivery", ["exactly-once", "at-least-once"])
def test_a_record_larger_than_what_may_wait_is_copied_or_kept_aside(lab, delivery):
    wide = lab.topic(target={"max.message.bytes": "10000000"})
    narrow = lab.topic()
    lab.prepare(quarantine={"max.message.bytes": "10000000"})
    for topic in (wide, narrow):
        lab.numbered(topic, range(3))
        lab.produce(topic, {"value": HUGE}, **COMPRESSED)
        lab.numbered(topic, range(3, 6))

    lane = lab.lane(wide, narrow, delivery=delivery, memory=MemoryShare(1))
    lab.caught_up(lane)

    small = [b"%d" % number for number in range(6)]
    arrived = {topic: list(dict.fromkeys(lab.values(topic))) for topic in (wide, narrow)}
    assert arrived == {wide: [*small[:3], HUGE, *small[3:]], narrow: small}
    assert {(about["topic"], about["offset"]) for _, about in lab.quarantined()} == {(narrow, 3)}
    lab.numbered(wide, range(6, 9))
    lab.caught_up(lane)
    assert not lane.lane._clients.record_by_record, "it is at full speed again"
    if delivery == "exactly-once":
        assert len(lab.values(wide)) == 10
