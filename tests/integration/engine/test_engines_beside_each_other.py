"""Two directions at the same time, in files that do not know each other: what whole batches brought does not go back."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from lane_lab import SETTINGS, LaneLab, numbers
from running_lane import RunningLane

from replicator.batches.registry import producer_registry
from replicator.batches.registry.other_topologies import registry_of_source
from replicator.batches.registry.producer_registry import register
from replicator.dataplane.transport.spec import LaneSpec, PartitionWork
from replicator.formats.producer_registry import RegisteredProducer
from replicator.identifiers import (
    checkpoints_topic,
    control_topic,
    quarantine_topic,
    topologies_from,
)
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.policy.copies.provenance import Arrivals
from replicator.policy.values import Naming
from replicator.testing import wait_until

BATCHES = {"engine": "batches", "provenance": "path"}
THERE = {"blocked": ("west",), "arrivals": Arrivals((("west", Naming()),)), "returns": True}
BACK = {"blocked": ("east",), "arrivals": Arrivals((("east", Naming()),)), "returns": True}
LOOKS = "whole batches have come to west from where this lane copies to"


def way_back(lab: LaneLab, name: str) -> LaneLab:
    """The same clusters from west to east, under a topology of this name."""
    back = LaneLab(lab.target, lab.source, name=name, prepared=True)
    compacted = {"cleanup.policy": "compact"}
    lab.source.create_topic(checkpoints_topic(name, "west"), partitions=1, config=compacted)
    lab.source.create_topic(control_topic(name), config=compacted)
    lab.source.create_topic(quarantine_topic(name, "west"))
    return back


def forget_other_topologies(lab: LaneLab) -> None:
    """What earlier tests left on west: a lane that finds whole batches of theirs looks from its start on."""
    with ClusterAdmin(lab.plan(lab.target, "west"), client_id="forget") as admin:
        names = topologies_from(("east",), admin.topic_partitions()) - {lab.name}
        admin.delete_topics([checkpoints_topic(name, "east") for name in names])
        wait_until(
            lambda: topologies_from(("east",), admin.topic_partitions()) <= {lab.name},
            timeout_seconds=30, describe="other topologies to be gone",
        )  # fmt: skip


EITHER_ENGINE = pytest.mark.parametrize(
    "engine",
    [
        pytest.param(BATCHES, id="batches"),
        pytest.param({}, id="records", marks=pytest.mark.slow),
    ],
)


@pytest.fixture
def back(lab: LaneLab) -> Iterator[LaneLab]:
    """The other direction of the same topology."""
    lab.prepare()
    back = way_back(lab, lab.name)
    forget_other_topologies(lab)
    yield back
    back.close()


@pytest.fixture
def other(lab: LaneLab) -> Iterator[LaneLab]:
    """The other direction, in another topology."""
    lab.prepare()
    other = way_back(lab, f"{lab.name}-other")
    yield other
    other.close()


def lane_back(back: LaneLab, topic: str, **settings: Any) -> RunningLane:
    """Copies from west to east; record by record where nothing else is said."""
    running = RunningLane(
        LaneSpec(
            topology=back.name, link="back", lane=0, layout_epoch=1,
            source=back.plan(back.source, "west"), target=back.plan(back.target, "east"),
            settings=replace(SETTINGS, **BACK, **settings),
            work=(PartitionWork(topic, 0, topic, ""),),
        )
    )  # fmt: skip
    back.lanes.append(running)
    return running


def test_whole_batches_that_begin_beside_a_lane_do_not_come_back_over_it(lab, back):
    topic = lab.topic()
    old = lane_back(back, topic, cyclic=True)
    back.numbered(topic, range(10))
    back.caught_up(old)  # its session is at work, and nothing was ever registered on west

    new = lab.lane(topic, **BATCHES, **THERE)
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


@EITHER_ENGINE
def test_a_lane_that_is_met_by_another_topology_looks_before_that_brings_anything(
    lab, other, engine
):
    topic = lab.topic()
    over = lane_back(other, topic, met_by_others=True, **engine)
    other.numbered(topic, range(10))
    other.caught_up(over)  # its session is at work, and the other topology has registered nothing
    there = lab.lane(topic, **BATCHES, **THERE)
    lab.numbered(topic, range(100, 200))
    lab.caught_up(there)
    other.caught_up(over)
    lab.caught_up(there)
    both = numbers(range(10), range(100, 200))
    assert [seen.value for seen in lab.on_source(topic)] == both
    assert lab.values(topic) == both


@EITHER_ENGINE
def test_what_another_topology_brought_in_whole_batches_does_not_go_back(lab, other, engine):
    topic = lab.topic()
    there = lab.lane(topic, **BATCHES, **THERE)
    lab.numbered(topic, range(100))
    lab.caught_up(there)
    over = lane_back(other, topic, **engine)
    other.numbered(topic, range(100, 110))
    other.caught_up(over)
    lab.caught_up(there)
    lab.numbered(topic, range(110, 120))
    lab.caught_up(there)
    other.caught_up(over)
    lab.caught_up(there)

    assert [seen.value for seen in lab.on_source(topic)] == numbers(range(120))
    assert lab.values(topic) == numbers(range(120))


@pytest.mark.parametrize(
    ("engine", "topology"),
    [
        pytest.param(BATCHES, "the same", id="the same-batches"),
        pytest.param({}, "another", id="another-records"),
        pytest.param({}, "the same", id="the same-records", marks=pytest.mark.slow),
        pytest.param(BATCHES, "another", id="another-batches", marks=pytest.mark.slow),
    ],
)
def test_a_lane_that_goes_over_to_whole_batches_under_its_old_id_is_noticed(
    lab, request, engine, topology
):
    """Who met the id before took it for a stranger's: copies by single records have headers, and are not registered."""
    back = request.getfixturevalue("back" if topology == "the same" else "other")
    met = {"cyclic": True} if topology == "the same" else {"met_by_others": True}
    topic = lab.topic()
    there = lab.lane(topic, **THERE, **met)
    lab.numbered(topic, range(100))
    lab.caught_up(there)
    over = lane_back(back, topic, met_by_others=True, **engine)
    back.numbered(topic, range(100, 110))
    back.caught_up(over)
    there.stop()
    there = lab.lane(topic, **BATCHES, **THERE, **met)
    lab.numbered(topic, range(110, 150))
    lab.caught_up(there)
    there.until_whole()
    lab.numbered(topic, range(150, 200))
    lab.caught_up(there)
    back.caught_up(over)
    lab.caught_up(there)
    back.caught_up(over)
    assert [seen.value for seen in lab.on_source(topic)] == numbers(range(200))
    copies = lab.on_target(topic)
    assert [seen.value for seen in copies] == numbers(range(200))
    # On west 100 to 109 are originals; of the copies those after the change have no header.
    marked = [*range(100), *range(110, 150)]
    assert [int(seen.value) for seen in copies if seen.headers] == marked


def test_an_id_that_was_read_with_the_answer_about_another_is_no_stranger_any_more(
    lab, other, monkeypatch
):
    monkeypatch.setattr(producer_registry, "BELIEVED_SECONDS", 0.0)
    east, (mine, new) = other.plan(other.target, "east"), (1_000_001, 1_000_002)
    registry = registry_of_source(east, lab.name, blocked=("west",), client_id="test")
    try:
        assert registry.source_of(mine) is None
        assert registry.source_of(mine) is None, "it is taken for a stranger's"
        register(east, other.name, RegisteredProducer(mine, "west", "east", "back", 1, 5))
        assert registry.source_of(new) is None, "which reads on to the end"
        assert registry.source_of(mine) == "west"
    finally:
        registry.close()
