"""The first write to a partition, refused while the next one is taken (see ``late_leader``)."""

import pytest
from lane_lab import LaneLab
from late_leader import LateLeader

# Batches of three: with fewer than five records under way the client sends the next one too.
VALUES = [b"%02d" % number + b"." * 300_000 for number in range(12)]


@pytest.mark.parametrize("delivery", ["exactly-once", "at-least-once"])
def test_a_leader_that_refuses_the_first_write_and_takes_the_next_loses_nothing(
    lab, clusters, unique, delivery
):
    (west,) = clusters("west", proxied=True)
    late = LaneLab(lab.source, west, name=unique)
    topic = late.topic()
    late.prepare()
    late.produce(topic, *({"value": value} for value in VALUES))
    (proxy,) = west.proxies
    proxy.stop()
    with LateLeader(port=proxy.port, target_port=proxy.target_port, topics={topic}) as leader:
        lane = late.lane(topic, delivery=delivery, commit_interval_seconds=0.5)
        try:
            late.caught_up(lane)
            assert late.values(topic) == VALUES
            assert bool(leader.overtaken) == (delivery == "exactly-once")
        finally:
            late.close()
