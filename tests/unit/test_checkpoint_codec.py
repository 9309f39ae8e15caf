"""Checkpoints on the wire: stable keys, nothing guessed."""

from dataclasses import replace

import orjson
import pytest

from replicator.errors import StoredFormatError
from replicator.formats.checkpoint import (
    NONE_COPIED,
    Checkpoint,
    TargetClaim,
    TargetLoss,
    decode_checkpoint,
    decode_checkpoints,
)
from replicator.identifiers import canary_topic

ONE = Checkpoint("orders", 3, 42, topic_id="A", records=7)


def test_the_key_is_the_same_for_every_state_of_a_partition():
    assert ONE.key() == Checkpoint("orders", 3, 99).key()
    assert ONE.key() != Checkpoint("orders", 4, 42).key()
    assert orjson.loads(ONE.key()) == {
        "kind": "checkpoint", "partition": 3, "topic": "orders", "v": 1,
    }  # fmt: skip


def test_records_of_another_kind_in_the_same_partition_are_passed_over():
    other = orjson.dumps({"kind": "index", "topic": "orders", "partition": 3, "v": 1})

    assert decode_checkpoint(other, b"{}") is None
    assert decode_checkpoints({other: b"{}", ONE.key(): ONE.value()}) == {("orders", 3): ONE}


def test_a_checkpoint_of_an_older_release_without_the_later_fields_is_read():
    value = orjson.loads(ONE.value())
    del value["quarantined"], value["leaderEpoch"]

    found = decode_checkpoint(ONE.key(), orjson.dumps(value))

    assert (found.offset, found.quarantined, found.leader_epoch) == (42, 0, -1)


CLAIMING = replace(
    ONE,
    position_epoch=5,
    record_end=40,
    start=3,
    target=TargetClaim("T", 99, 2, 39),
    target_loss=TargetLoss(1, 1000, "cut"),
)


def test_what_a_checkpoint_says_of_both_logs_is_kept():
    assert decode_checkpoint(CLAIMING.key(), CLAIMING.value()) == CLAIMING


def test_what_ranges_copied_is_kept_apart_from_what_lanes_did():
    by_range = replace(ONE, ranged=7)
    assert decode_checkpoint(by_range.key(), by_range.value()) == by_range
    assert not by_range.copied_by_lanes
    assert replace(by_range, records=8).copied_by_lanes
    assert "ranged" not in orjson.loads(ONE.value())
    assert ONE.copied_by_lanes


def test_a_lane_has_copied_a_canary_though_its_records_are_not_counted():
    beats = Checkpoint(canary_topic("lab", "east", "west", "link"), 0, 42)
    assert not beats.copied_by_lanes
    assert not replace(beats, target=TargetClaim("T", 0, 2, NONE_COPIED)).copied_by_lanes
    assert replace(beats, target=TargetClaim("T", 99, 2, 41)).copied_by_lanes


def test_where_the_source_was_rewound_and_a_leaders_epoch_are_kept():
    seen = replace(
        CLAIMING,
        epoch_of_leader=True,
        target=TargetClaim("T", 99, 2, NONE_COPIED, ((12, 4), (30, 7))),
    )
    assert decode_checkpoint(seen.key(), seen.value()) == seen
    # An older release would take it for the epoch of a record.
    assert orjson.loads(seen.value())["positionEpoch"] == -1
    handed_on = orjson.loads(seen.value()) | {"offset": 50}
    found = decode_checkpoint(seen.key(), orjson.dumps(handed_on))
    assert (found.position_epoch, found.epoch_of_leader, found.target.rewinds) == (-1, False, ())


def test_claims_that_an_older_release_handed_on_with_a_later_position_hold_no_more():
    value = orjson.loads(CLAIMING.value()) | {"offset": 50, "positionEpoch": 6}

    found = decode_checkpoint(CLAIMING.key(), orjson.dumps(value))

    assert found.target == TargetClaim()
    assert (found.record_end, found.position_epoch) == (50, 6)
    assert (found.start, found.target_loss.count) == (3, 1)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"not json", ONE.value()),
        (ONE.key(), b"not json"),
        (ONE.key(), b"{}"),
        (ONE.key(), ONE.value().replace(b'"v":1', b'"v":2')),
        (b"[]", ONE.value()),
        (ONE.key(), b"[]"),
    ],
    ids=["key", "value", "empty", "newer version", "key is a list", "value is a list"],
)
def test_what_is_not_ours_is_refused_and_never_guessed(key, value):
    with pytest.raises(StoredFormatError):
        decode_checkpoint(key, value)
