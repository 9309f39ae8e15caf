"""Controllers replace each other at any instant while lanes copy; planted bugs are found.

The schedules are ``tests/support/simulated_control.py``.
"""

import pytest
import simulated_control
from schedules import first_broken
from simulated_control import ModelWriter, SimulatedController, World, run_schedule

from replicator.control.lanes import checkpoint_moves
from replicator.control.records.pair_records import Layout

SEEDS = 60
FOUND_WITHIN = 400


def test_each_record_is_copied_once_under_any_controller_at_any_time():
    assert first_broken(run_schedule, range(SEEDS)) is None


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_five_thousand_other_schedules_hold_too():
    assert first_broken(run_schedule, range(SEEDS, SEEDS + 5_000)) is None


# -- planted bugs: one decision each is wrong -------------------------------------------------------


def lanes_are_not_fenced(patch):
    patch.setattr(ModelWriter, "fence_lanes", lambda *_: None)


def only_the_first_lane_is_fenced(patch):
    true = ModelWriter.fence_lanes
    patch.setattr(ModelWriter, "fence_lanes", lambda writer, lanes: true(writer, [*lanes][:1]))


def a_change_is_not_declared(patch):
    true = ModelWriter.write

    def written(writer, records):
        if b'"changing"' not in b"".join(each.value or b"" for each in records):
            true(writer, records)

    patch.setattr(ModelWriter, "write", written)


def a_commit_without_an_answer_is_never_decided_by_the_next_owner(patch):
    patch.setattr(World, "initialise", _initialised)


def _initialised(world, id_):
    world.epochs[id_] = world.epochs.get(id_, 0) + 1
    return simulated_control.Transaction(id_, world.epochs[id_])


def lanes_do_not_ask_whether_their_layout_holds(patch):
    patch.setattr(simulated_control, "lane_may_start", lambda *_: True)


def earlier_controllers_may_go_on(patch):
    true = World.fence

    def fence(world, open_):
        if not open_.id.endswith("controller"):
            true(world, open_)

    patch.setattr(World, "fence", fence)


def a_controller_reads_before_it_fences_the_last_one(patch):
    true = ModelWriter.__init__

    def opened(writer, pair, topology, *, client_id):
        simulated_control._now[-1].early = simulated_control._now[-1].states[-1]
        true(writer, pair, topology, client_id=client_id)

    patch.setattr(ModelWriter, "__init__", opened)
    patch.setattr(SimulatedController, "_read_control", lambda each: each._world.early)


def a_layout_holds_before_its_checkpoints_are_moved(patch):
    true = ModelWriter.write

    def written(writer, records):
        records = list(records)
        for part in (records[-1:], records[:-1]) if len(records) > 1 else (records,):
            true(writer, part)

    patch.setattr(ModelWriter, "write", written)


def checkpoints_are_read_before_lanes_are_fenced(patch):
    grow, read = simulated_control._grow, simulated_control._read_checkpoints

    def early(admin, name, *, partitions):
        found = grow(admin, name, partitions=partitions)
        simulated_control._now[-1].early = read("", "", None, range(found.partitions))
        return found

    patch.setattr(simulated_control, "_grow", early)
    patch.setattr(
        simulated_control, "_read_checkpoints", lambda *_, **__: simulated_control._now[-1].early
    )


def checkpoints_are_left_where_they_were(patch):
    patch.setattr(checkpoint_moves, "_lane", lambda *_: None)


def a_layout_keeps_its_epoch(patch):
    true = simulated_control.decide_layout

    def same(pair, current, **facts):
        found = true(pair, current, **facts)
        if current is None:
            return found
        kept = {**found.layout.model_dump(), "epoch": current.epoch}
        return type(found)(Layout(**kept), found.change, found.reason)

    patch.setattr(simulated_control, "decide_layout", same)


PLANTED = [
    lanes_are_not_fenced,
    only_the_first_lane_is_fenced,
    a_change_is_not_declared,
    a_commit_without_an_answer_is_never_decided_by_the_next_owner,
    lanes_do_not_ask_whether_their_layout_holds,
    earlier_controllers_may_go_on,
    a_controller_reads_before_it_fences_the_last_one,
    a_layout_holds_before_its_checkpoints_are_moved,
    checkpoints_are_read_before_lanes_are_fenced,
    checkpoints_are_left_where_they_were,
    a_layout_keeps_its_epoch,
]


@pytest.mark.parametrize("plant", PLANTED, ids=[plant.__name__ for plant in PLANTED])
def test_a_planted_bug_is_found(plant, monkeypatch):
    plant(monkeypatch)
    assert first_broken(run_schedule, range(FOUND_WITHIN)) is not None
