"""A group that moves between two clusters skips nothing and is never taken back; planted bugs are found.

The schedules are ``tests/support/simulated_groups.py``.
"""

import pytest
from schedules import first_broken
from simulated_groups import ModelTranslator, run_schedule

from replicator.offsets.groups import group_decision, group_evaluation
from replicator.offsets.groups.group_decision import GroupOutcomeDraft
from replicator.offsets.groups.group_sync import GroupSync
from replicator.offsets.translation.translation import exact

SEEDS = 600


def test_a_group_that_moves_skips_nothing_and_never_goes_back():
    assert first_broken(run_schedule, range(SEEDS)) is None


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_fifty_thousand_other_schedules_hold_too():
    assert first_broken(run_schedule, range(SEEDS, SEEDS + 50_000)) is None


# -- planted bugs: one decision each is wrong -------------------------------------------------------


def positions_are_set_without_a_last_look(patch):
    true = GroupSync._commit

    def commit(sync, works, target):
        for work in works:
            work.target = target.committed_offsets([work.group])[work.group]
        return true(sync, works, target)

    patch.setattr(GroupSync, "_commit", commit)


def positions_are_one_too_far(patch):
    true = ModelTranslator.cross
    patch.setattr(
        ModelTranslator, "cross", lambda each, path, at: exact(true(each, path, at).offset + 1)
    )


def positions_behind_are_set_too(patch):
    def behind(_facts, source, _target, offset, _rewind):
        return GroupOutcomeDraft("commit", offset, source.metadata)

    patch.setattr(group_decision, "_behind", behind)


def the_end_of_the_source_is_its_position(patch):
    true = group_evaluation.evaluate

    def evaluate(translator, path, *ways, source, **more):
        end = type(source)(translator.ends(path)[0], source.metadata, None)
        return true(translator, path, *ways, source=end, **more)

    patch.setattr("replicator.offsets.groups.group_sync.evaluate", evaluate)


PLANTED = [
    positions_are_set_without_a_last_look,
    positions_are_one_too_far,
    positions_behind_are_set_too,
    the_end_of_the_source_is_its_position,
]


@pytest.mark.parametrize("plant", PLANTED, ids=[plant.__name__ for plant in PLANTED])
def test_a_planted_bug_is_found(plant, monkeypatch):
    plant(monkeypatch)
    assert first_broken(run_schedule, range(SEEDS)) is not None
