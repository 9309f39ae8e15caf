"""Which copy is the last one where the source went back to offsets that had been copied before."""

from dataclasses import replace

import pytest

from replicator.dataplane.takeover.rewinds import last_copies_in_order
from replicator.dataplane.takeover.target_looks import LastCopy
from replicator.dataplane.takeover.target_loss import SeenTarget, claimed_now, rewound
from replicator.formats.checkpoint import NONE_COPIED, Checkpoint, TargetClaim

PLACE = ("orders", 0)
SEEN = SeenTarget("T", 0, 30, 3)
ONCE, TWICE = ((21, 12),), ((21, 12), (26, 14))


def last(copies, rewinds, *, seen=SEEN, topic_id="T"):
    """Of copies by target offset; each look gives the highest source offset, as the real one does."""

    def look(wanted):
        part = wanted[PLACE]
        found = [(copies[at], at) for at in copies if part.start <= at < part.end]
        source, target = max(found, default=(None, -1))
        return {PLACE: LastCopy(source, target_offset=target)}

    claim = TargetClaim(topic_id, 30, 3, 16, rewinds)
    return last_copies_in_order(look, {PLACE: seen}, {PLACE: claim})[PLACE]


OLD = {at: at for at in range(21)}


@pytest.mark.parametrize(
    ("copies", "rewinds", "source"),
    [
        (OLD, (), 20),
        ({**OLD, 21: 12, 22: 13}, ONCE, 13),
        ({**OLD, 21: 12, 22: 13, 23: 3}, ONCE, 13),
        (OLD, ONCE, 11),
        ({at: at for at in range(6)}, ONCE, 5),
        ({**OLD, 21: 12, 22: 13, 23: 14, 24: 15}, TWICE, 13),
        ({**OLD, 21: 12}, TWICE, 12),
        (OLD, TWICE, 11),
        ({}, TWICE, None),
    ],
    ids=[
        "never", "once", "put back behind", "all new ones lost", "old ones too", "the last part lost",
        "more than that", "both parts lost", "none",
    ],
)  # fmt: skip
def test_the_last_copy_is_the_last_of_the_log_that_the_source_has_now(copies, rewinds, source):
    assert last(copies, rewinds).source_offset == source


def test_a_copy_of_an_older_log_is_none_to_count_from():
    assert last(OLD, ONCE).target_offset == -1


def test_what_retention_took_and_another_topic_are_not_looked_through():
    assert last(OLD, ONCE, seen=replace(SEEN, start=25)).source_offset is None
    assert last(OLD, ONCE, topic_id="other").source_offset == 20


def test_a_claim_goes_back_with_the_source():
    claim = rewound(TargetClaim("T", 30, 3, 20), 12)
    assert (claim.last_copied, claim.rewinds) == (11, ((30, 12),))
    assert rewound(claim, 0).last_copied == NONE_COPIED
    assert rewound(claim, 0).rewinds == ((30, 0),)
    assert rewound(TargetClaim(), 12) == TargetClaim()


def test_a_target_that_was_cut_keeps_only_what_it_still_has():
    held = Checkpoint("orders", 0, 13, target=TargetClaim("T", 40, 3, 12, TWICE))
    assert claimed_now(held, replace(SEEN, end=24)).rewinds == ((21, 12), (24, 13))
    assert claimed_now(held, replace(SEEN, topic_id="other")).rewinds == ()
