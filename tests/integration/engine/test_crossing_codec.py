"""A target that takes no batches that are compressed: the lane says so, and loses and repeats nothing."""

import pytest
from proxied_lab import ProxiedLab

from replicator.policy.capacity.line_settings import FAR_CODEC
from replicator.testing import ProtocolProxy
from replicator.testing.faults.protocol_rules import Answer, Api, Match, Rule

UNSUPPORTED_COMPRESSION_TYPE = 76


@pytest.mark.parametrize("delivery", ["exactly-once", "at-least-once"])
def test_a_refused_codec_is_named_and_not_asked_for_again(east, west, unique, delivery):
    lab = ProxiedLab(east, west, name=unique)
    lab.target_settings = (("compression.type", FAR_CODEC),)
    with ProtocolProxy(west.bootstrap_servers) as proxy:
        lab.through(proxy)
        topic = lab.topic()
        lab.numbered(topic, range(100))
        lab.prepare()
        refused = Rule(Match(Api.PRODUCE, topic=topic), Answer(UNSUPPORTED_COMPRESSION_TYPE))
        proxy.play([refused])
        try:
            lane = lab.lane(topic, delivery=delivery)
            lab.caught_up(lane)
            told = [said.fields for said in lane.log if said.event.startswith("lane recovers")]
            assert lane.lane._context.crossing.of(FAR_CODEC) == "none", told
        finally:
            lab.close()
    assert lab.values(topic) == [b"%d" % number for number in range(100)]
    assert lab.quarantined() == []
    told = [said.fields["error"] for said in lane.log if said.event.startswith("lane recovers")]
    assert len(told) == 1
    assert "does not take batches with this compression" in told[0]
