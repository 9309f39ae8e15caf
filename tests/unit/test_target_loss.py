"""When a target counts as having lost records, and where copying goes on: every case, by name."""

from dataclasses import replace

import pytest

from replicator.batches.codec.found_batches import FoundBatch, found_batches
from replicator.batches.codec.stretch import Stretch
from replicator.dataplane.takeover.counted_copies import not_copied, nth
from replicator.dataplane.takeover.takeover import _last_copies
from replicator.dataplane.takeover.target_looks import LastCopy
from replicator.dataplane.takeover.target_loss import SeenTarget, find_loss, moved_back, needs_look
from replicator.dataplane.transport.spec import LaneSettings
from replicator.formats.checkpoint import NONE_COPIED, Checkpoint, TargetClaim
from replicator.formats.left_out import LeftOut
from replicator.identifiers import HOPS_HEADER
from replicator.policy.values import StartFrom
from replicator.wire.records.record_batch import RawRecord, encode_batch

CLAIM = TargetClaim("T", 100, 3, 79)
HELD = Checkpoint("orders", 0, 80, start=5, position_epoch=1, record_end=80, target=CLAIM)


def seen(topic_id: str = "T", start: int = 0, end: int = 100, leader_epoch: int = 3) -> SeenTarget:
    return SeenTarget(topic_id, start, end, leader_epoch)


def loss(target: SeenTarget, last_copy: int | None, *, marked: bool = True, earliest: int = 0):
    return find_loss(HELD, target, last_copy, marked=marked, earliest=earliest)


@pytest.mark.parametrize(
    ("target", "suspect"),
    [
        (seen(), False),
        (seen(end=500), False),
        (seen(topic_id=""), False),
        (seen(end=99), True),
        (seen(leader_epoch=4), True),
        (seen("other"), True),
    ],
    ids=["same", "longer", "no ids", "shorter", "new leader", "recreated"],
)
def test_only_a_log_that_may_have_lost_records_is_looked_into(target, suspect):
    assert needs_look(CLAIM, target) is suspect
    assert not needs_look(TargetClaim(), target)


def test_a_partition_that_stopped_for_it_continues_once_its_copy_was_recreated_empty():
    stopped = replace(HELD, problem="TARGET_REGRESSED", detail="the target log ends at 3")
    found = find_loss(stopped, seen("other", end=0), None, marked=False, earliest=0)
    assert found.resume_at == 5
    back = moved_back(stopped, found, at_ms=7)
    assert (back.offset, back.problem, back.detail) == (5, "", "")


@pytest.mark.parametrize(
    ("target", "last_copy", "resume_at"),
    [
        (seen(end=90), 59, 60),
        (seen(end=90), None, 5),
        (seen(end=500, leader_epoch=4), 59, 60),
        (seen("other", end=0), None, 5),
        (seen("other", end=60), 59, 60),
    ],
    ids=["cut", "cut to nothing", "cut and longer again", "recreated", "recreated with copies"],
)
def test_copying_goes_on_behind_the_last_record_that_is_there(target, last_copy, resume_at):
    found = loss(target, last_copy)

    assert found.resume_at == resume_at
    back = moved_back(HELD, found, at_ms=7)
    assert (back.offset, back.position_epoch, back.record_end) == (resume_at, 1, resume_at)
    assert back.epoch_of_leader
    assert (back.target_loss.count, back.target_loss.at_ms) == (1, 7)
    assert f"source offsets {resume_at} to 79 are copied again" in back.target_loss.detail


@pytest.mark.parametrize(
    ("target", "last_copy"),
    [
        (seen(leader_epoch=4), 79),
        (seen(leader_epoch=4), None),
        (seen(start=100, leader_epoch=4), None),
        (seen(end=99), 79),
        (seen("other", end=80), 79),
        (seen("other", end=80), 85),
    ],
    ids=["new leader", "retention", "empty", "a marker lost", "whole again", "further"],
)
def test_nothing_is_copied_again_where_no_record_is_missing(target, last_copy):
    assert loss(target, last_copy) is None


def test_a_log_without_any_copy_lost_them_where_nothing_is_ever_deleted():
    def whole(target: SeenTarget):
        return find_loss(HELD, target, None, marked=True, earliest=0, never_deleted=True)

    assert whole(seen(leader_epoch=4)).resume_at == 5
    assert whole(seen(end=0)).resume_at == 5


def test_where_nothing_was_copied_yet_nothing_of_ours_is_missing():
    none = replace(HELD, target=replace(CLAIM, last_copied=NONE_COPIED))
    assert find_loss(none, seen(end=90), None, marked=True, earliest=0) is None
    back = moved_back(HELD, loss(seen(end=90), None), at_ms=7)
    assert back.target.last_copied == NONE_COPIED


def test_a_recreated_copy_gets_what_the_source_still_has():
    assert loss(seen("other", end=0), None, earliest=30).resume_at == 30


def test_copies_that_carry_no_positions_say_only_that_something_is_missing():
    assert loss(seen(end=90), None, marked=False).resume_at is None
    assert loss(seen("other", end=9), None, marked=False).resume_at is None
    assert loss(seen("other", end=0), None, marked=False).resume_at == 5
    assert loss(seen(leader_epoch=4), None, marked=False) is None


def test_a_recreated_copy_without_marks_goes_on_behind_marked_ones_that_were_put_back():
    assert loss(seen("other", end=60), 59, marked=False).resume_at == 60
    assert loss(seen("other", end=80), 79, marked=False) is None


def test_copies_that_were_counted_go_on_behind_the_last_of_them():
    def counted(target: SeenTarget, last_copy: int | None):
        return find_loss(HELD, target, last_copy, marked=False, counted=True, earliest=0)

    assert counted(seen(leader_epoch=4), 59).resume_at == 60  # cut, and as long as before
    assert counted(seen(end=90), 59).resume_at == 60
    assert counted(seen(leader_epoch=4), 79) is None
    assert counted(seen("other", end=9), 59).resume_at is None


@pytest.mark.parametrize(("count", "offset"), [(0, None), (1, 5), (3, 7), (4, 10), (9, 11)])
def test_the_nth_record_of_a_stretch(count, offset):
    assert nth([Stretch(5, 3), Stretch(10, 2)], count) == offset


def batch(first: int, producer: int, *hops: bytes) -> FoundBatch:
    """A batch of one record for each hop list, an empty one for none."""
    records = [
        RawRecord(
            first + at, 1, "CreateTime", None, b"v", ((HOPS_HEADER.encode(), hop),) if hop else ()
        )
        for at, hop in enumerate(hops)
    ]
    data = memoryview(bytearray(encode_batch(records, producer_id=producer)))
    return next(iter(found_batches(data, position=first, place="orders/0")))


@pytest.mark.parametrize(
    ("returns", "passed"),
    [(True, [{5, 6}, {8}, {9}, set()]), (False, [set(), set(), {9}, set()])],
    ids=["comes back", "one way"],
)
def test_what_came_from_the_target_or_was_left_out_has_no_copy_that_counts(returns, passed):
    settings = LaneSettings(
        delivery="exactly-once", commit_interval_seconds=0.2, provenance="path", blocked=("west",),
        start_from=StartFrom(), on_record_error="quarantine", on_truncation="stop", returns=returns,
    )  # fmt: skip
    left_out = LeftOut((9,))
    offsets = not_copied(settings, {7: "west", 8: None}.get, ("orders", 0), left_out)
    found = [
        batch(5, 7, b"", b""),
        batch(7, 8, b"", b"west/orders/0/3"),
        batch(9, 8, b"north/orders/0/3"),
        batch(10, 8, b""),
    ]
    held = [{each.base_offset + at for at in range(each.count)} for each in found]
    assert [set(offsets(each)) & at for each, at in zip(found, held, strict=True)] == passed


def test_copies_without_marks_are_not_taken_for_lost_ones():
    bare = replace(HELD, target=replace(CLAIM, last_copied=-1))

    assert find_loss(bare, seen(leader_epoch=4), 20, marked=True, earliest=0) is None
    assert find_loss(bare, seen(end=90), 20, marked=True, earliest=0).resume_at is None


def test_behind_the_last_mark_others_may_stand_that_would_be_there_twice():
    def mixed(target: SeenTarget, last_copy: int | None):
        return find_loss(HELD, target, last_copy, marked=True, mixed=True, earliest=0)

    assert mixed(seen(end=90), 59).resume_at is None  # stopped: not copied again from 60 on
    assert mixed(seen(end=90), None).resume_at is None
    assert mixed(seen(leader_epoch=4), 59) is None
    assert mixed(seen(leader_epoch=4), 79) is None
    assert mixed(seen("other", end=60), 59).resume_at == 60  # nothing is left of the old log


class Counted:
    """Tells some last copies from the offset map, and others only from a copy that is known."""

    needed = True

    def __init__(self, told, behind):
        self.asked = []
        self._told, self._behind = told, behind

    def __call__(self, ends, known=None):
        self.asked.append((dict(ends), known))
        found = self._told if known is None else self._behind
        return {key: found[key] for key in ends if key in found}


def test_where_both_engines_wrote_the_offset_map_comes_first_and_marks_where_it_tells_nothing():
    near, far, lost, quiet = (("orders", number) for number in range(4))
    bare = replace(HELD, target=replace(CLAIM, last_copied=-1))
    held = {near: HELD, far: HELD, lost: HELD, quiet: bare}
    count = Counted({near: 70}, {far: 75})
    searched = []

    def marked(some):
        searched.extend(some)
        return {key: LastCopy(40, target_offset=50) for key in some}

    found = _last_copies(dict.fromkeys(held, 90), held, count, marked)

    assert found == {
        near: LastCopy(70, counted=True),
        far: LastCopy(75, counted=True),
        lost: LastCopy(40, target_offset=50, mixed=True),
        quiet: LastCopy(None, mixed=True),
    }
    assert searched == [far, lost]
    assert count.asked[1] == ({far: 90, lost: 90}, {far: (40, 50), lost: (40, 50)})
