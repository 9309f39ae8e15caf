"""A lane asks its source in paces while records come briskly; going there and back loses and repeats nothing."""

import pytest
from lane_lab import numbers

from replicator.dataplane.session import fetch_paces, paced_consumer
from replicator.dataplane.session.paced_consumer import PacedConsumer
from replicator.testing import wait_until


@pytest.mark.parametrize("delivery", ["exactly-once", "at-least-once"])
def test_a_lane_goes_over_to_paces_and_back_with_every_record_once_and_in_order(
    lab, delivery, monkeypatch
):
    monkeypatch.setattr(fetch_paces, "CALM_WINDOWS", 1)
    monkeypatch.setattr(paced_consumer, "AGAIN_SECONDS", 1.0)
    takes_over, changes = PacedConsumer._take_over, []

    def noted(consumer, client):
        takes_over(consumer, client)
        changes.append(consumer.paced)

    monkeypatch.setattr(PacedConsumer, "_take_over", noted)
    topic = lab.topic(partitions=2)
    lane = lab.lane(topic, delivery=delivery)
    written = 0

    def write():
        nonlocal written
        for partition in range(2):
            lab.numbered(topic, range(written, written + 100), partition=partition)
        written += 100

    def write_until_paced():
        def paced():
            write()
            return changes[-1:] == [True]

        wait_until(paced, timeout_seconds=60, describe="paces", interval_seconds=0.01)

    write_until_paced()
    write()
    lab.until(lambda: changes[-1] is False, "the plain consumer again", lane)
    write()
    write_until_paced()

    def arrived():
        found = {0: [], 1: []}
        for each in lab.on_target(topic):
            found[each.partition].append(each.value)
        return found

    lab.until(lambda: all(len(each) >= written for each in arrived().values()), "all of it", lane)
    assert arrived() == dict.fromkeys(range(2), numbers(range(written)))
