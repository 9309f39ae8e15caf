"""What becomes of a group's position: carried over, kept, or refused with the reason."""

import pytest

from replicator.offsets.groups.group_decision import (
    GroupFacts,
    GroupPosition,
    Synced,
    decide,
    needs_back,
)
from replicator.offsets.groups.group_report import (
    GroupOutcome,
    PartitionOutcome,
    SyncReport,
    last_synced_ms,
)
from replicator.offsets.translation.translation import bounded, exact, unavailable


def facts(source=50, target=40, translation=None, **changes):
    known = {
        "source": None if source is None else GroupPosition(source, "meta"),
        "target": None if target is None else GroupPosition(target, "meta"),
        "target_active": False,
        "translation": translation or exact(60),
        **changes,
    }
    return GroupFacts(**known)


def test_a_position_that_moved_on_is_carried_over_with_its_metadata():
    outcome = decide(facts(back=exact(30)))
    assert (outcome.action, outcome.offset, outcome.metadata) == ("commit", 60, "meta")


def test_a_first_position_is_carried_over_even_where_it_is_only_bounded():
    assert decide(facts(target=None, translation=bounded(60, 3, "why"))).action == "commit"


@pytest.mark.parametrize("target", [None, 10])
def test_an_active_group_is_left_alone_and_that_is_reported(target):
    outcome = decide(facts(target=target, target_active=True))
    assert (outcome.action, outcome.reason) == ("refuse", "the group is active on the target")


def test_an_active_group_that_is_not_behind_is_nothing_to_report():
    assert decide(facts(target=60, target_active=True)).action == "keep"


def test_a_group_without_a_position_here_is_kept_as_it_is():
    assert decide(facts(source=None)).action == "keep"


def test_what_cannot_be_translated_is_refused_with_the_reason():
    outcome = decide(facts(translation=unavailable("too old")))
    assert (outcome.action, outcome.reason) == ("refuse", "too old")


def test_a_position_left_by_the_other_direction_does_not_travel_back():
    """There stands for the same records as here, although its translation is a little higher."""
    asked = facts(source=50, target=59)
    assert needs_back(asked)
    outcome = decide(facts(source=50, target=59, back=exact(50)))
    assert (outcome.action, outcome.reason) == ("keep", "stands for the same records")
    assert decide(facts(source=51, target=59, back=exact(50))).action == "commit"


def test_a_group_that_is_further_ahead_there_is_never_moved_back():
    for rewind in ("never", "follow"):
        outcome = decide(facts(target=90, last=Synced(50, 60)), rewind=rewind)
        assert (outcome.action, outcome.reason) == ("keep", "further ahead on the target")


def test_a_group_that_went_back_here_is_refused_or_followed_as_the_policy_says():
    went_back = facts(source=20, target=60, translation=exact(25), last=Synced(50, 60))
    assert decide(went_back).action == "refuse"
    assert "rewind is 'never'" in decide(went_back).reason
    followed = decide(went_back, rewind="follow")
    assert (followed.action, followed.offset) == ("commit", 25)


def test_going_back_is_not_followed_where_the_group_moved_there_or_nothing_is_remembered():
    both = facts(source=20, target=70, translation=exact(25), last=Synced(50, 60))
    assert decide(both, rewind="follow").action == "refuse"
    unknown = facts(source=20, target=70, translation=exact(25))
    assert decide(unknown, rewind="follow").action == "keep"


def test_changed_metadata_follows_a_position_that_was_synced():
    moved = GroupFacts(
        source=GroupPosition(50, "new"), target=GroupPosition(60, "old"), target_active=False,
        translation=exact(60), last=Synced(50, 60),
    )  # fmt: skip
    assert decide(moved).action == "commit"
    assert decide(facts(target=60)).action == "keep"


def test_back_is_asked_for_only_before_a_position_moves_forward():
    assert not needs_back(facts(target=None))
    assert not needs_back(facts(target=60))
    assert not needs_back(facts(target_active=True))
    assert not needs_back(facts(translation=unavailable("x")))


def test_a_report_counts_grades_names_refusals_and_is_read_back():
    outcome = decide(facts(translation=unavailable("too old")))
    part = PartitionOutcome(
        "orders", "orders", 0, 50, 40, None, "unavailable", 0, 0, 5, 6, outcome, "too old"
    )
    report = SyncReport(
        "east", "east->west", 1234,
        (
            GroupOutcome("one", "l", "refused", (part,)),
            GroupOutcome("two", "l", "failed", reason="no answer"),
        ),
    )  # fmt: skip
    assert report.translations() == {"exact": 0, "bounded": 0, "unavailable": 1}
    assert report.refusals() == (("one", "too old"), ("two", "no answer"))
    key, value = report.encode()
    assert last_synced_ms({key: value}, "east") == (1234, {"two"})
    assert last_synced_ms({key: value}, "west") == (None, set())
    assert part.as_json()["refused"] == "too old"
