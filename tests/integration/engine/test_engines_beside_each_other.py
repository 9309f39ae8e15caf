"""Two directions at the same time, of which one goes over to whole batches by a file that the other has not read yet."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from lane_lab import SETTINGS, LaneLab, numbers
from running_lane import RunningLane

from replicator.dataplane.transport.spec import LaneSpec, PartitionWork
from replicator.identifiers import checkpoints_topic, control_topic, quarantine_topic
from replicator.policy.copies.provenance import Arrivals
from replicator.policy.values import Naming

THERE = {"blocked": ("west",), "arrivals": Arrivals((("west", Naming()),)), "returns": True}
BACK = {"blocked": ("east",), "arrivals": Arrivals((("east", Naming()),)), "returns": True}
LOOKS = "whole batches have come to west from where this lane copies to"


@pytest.fixture
def back(lab: LaneLab) -> Iterator[LaneLab]:
    """The same clusters and topology, from west to east."""
    lab.prepare()
    back = LaneLab(lab.target, lab.source, name=lab.name, prepared=True)
    compacted = {"cleanup.policy": "compact"}
    lab.source.create_topic(checkpoints_topic(lab.name, "west"), partitions=1, config=compacted)
    lab.source.create_topic(control_topic(lab.name), config=compacted)
    lab.source.create_topic(quarantine_topic(lab.name, "west"))
    yield back
    back.close()


def lane_back(back: LaneLab, topic: str) -> RunningLane:
    """Copies record by record from west to east, as a file says that has both directions."""
    running = RunningLane(
        LaneSpec(
            topology=back.name, link="back", lane=0, layout_epoch=1,
            source=back.plan(back.source, "west"), target=back.plan(back.target, "east"),
            settings=replace(SETTINGS, cyclic=True, **BACK),
            work=(PartitionWork(topic, 0, topic, ""),),
        )
    )  # fmt: skip
    back.lanes.append(running)
    return running


def test_whole_batches_that_begin_beside_a_lane_do_not_come_back_over_it(lab, back):
    topic = lab.topic()
    old = lane_back(back, topic)
    back.numbered(topic, range(10))
    back.caught_up(old)  # its session is at work, and nothing was ever registered on west

    new = lab.lane(topic, engine="batches", provenance="path", **THERE)
    lab.numbered(topic, range(100, 300))
    lab.caught_up(new)
    assert lab.values(topic) == numbers(range(10), range(100, 300))
    back.numbered(topic, range(10, 20))
    back.caught_up(old)
    lab.caught_up(new)

    on_east = [seen.value for seen in lab.on_source(topic)]
    assert on_east == numbers(range(10), range(100, 300), range(10, 20))
    assert lab.values(topic) == numbers(range(10), range(100, 300), range(10, 20))
    assert [line.fields["error"] for line in old.log if "error" in line.fields] == [LOOKS]
