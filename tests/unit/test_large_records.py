"""Records of links with very many partitions fit into what brokers take, and are read back whole."""

import gc
import random
import weakref

import orjson
import pytest

from replicator.control.records.base import LARGE_BYTES, PACKED
from replicator.control.records.decode import decode_record
from replicator.control.records.role_records import (
    ContactRecord,
    Denial,
    FenceRecord,
    StepRecord,
    TopicContact,
    TransitionRecord,
)
from replicator.control.store.state import EMPTY
from replicator.errors import StoredFormatError
from replicator.failover.report.report import Loss, StepResult, TopicLoss, TransitionReport

BROKER_LIMIT = 1_048_588
PARTITIONS = 20_000
NAMES = [f"shop.orders-by-region.{number:05d}" for number in range(PARTITIONS)]


def offsets(seed):
    places = random.Random(seed)  # as little alike as offsets ever are
    return {name: [places.randrange(1_000_000_000)] for name in NAMES}


def step():
    evidence = {"newEnds": offsets(1), "oldEnds": offsets(2), "positions": offsets(3)}
    return StepRecord(
        link="dr", id="1", step="promote", state="done", at_ms=1, by="ann", evidence=evidence
    )


def fence():
    denials = tuple(Denial(pattern="LITERAL", name=one, principal="User:shop") for one in NAMES)
    return FenceRecord(
        link="dr", cluster="east", method="acl", state="held", at_ms=1, by="ann", denials=denials
    )


def contact():
    topics = tuple(
        TopicContact(topic=name, ends=tuple(ends), records_per_second=0.1)
        for name, ends in offsets(4).items()
    )
    return ContactRecord(source="east", link="dr", at_ms=1, topics=topics)


def transition():
    loss = Loss(tuple(TopicLoss(name, number, 0.5) for number, name in enumerate(NAMES)))
    report = TransitionReport(
        id="1", kind="failover", link="dr", from_cluster="east", to_cluster="west", epoch=1,
        outcome="done", at_ms=1, by="ann", loss=loss, steps=(StepResult("promote", 1.0, "done"),),
    )  # fmt: skip
    return TransitionRecord(
        link="dr", id="1", kind="failover", state="done", source="east", target="west",
        home="west", token="t", at_ms=1, by="ann", options={"loss": loss.as_json()},
        report=report.as_json(),
    )  # fmt: skip


@pytest.mark.parametrize("make", [step, fence, contact, transition])
def test_twenty_thousand_partitions_fit_and_are_read_back(make):
    record = make()
    key, value = record.encode()
    assert len(orjson.dumps(record.model_dump(mode="json"))) > BROKER_LIMIT
    assert len(key) + len(value) < 0.9 * BROKER_LIMIT
    assert decode_record(key, value)[1] == record
    assert EMPTY.fold([(key, value)]).records()


def test_small_values_stay_readable_as_they_are():
    small = StepRecord(link="dr", id="1", step="drain", state="done", at_ms=1, by="ann")
    assert PACKED not in orjson.loads(small.encode()[1])
    assert len(small.encode()[1]) < LARGE_BYTES


def test_what_an_older_release_could_have_written_it_can_read():
    ends = dict(list(offsets(1).items())[:16_000])
    large = step().model_copy(update={"evidence": {"newEnds": ends}})
    _, value = large.encode()
    assert 600_000 < len(value) < LARGE_BYTES
    assert PACKED not in orjson.loads(value)


def test_a_compressed_value_that_is_not_ours_is_refused():
    key, _ = step().encode()
    with pytest.raises(StoredFormatError, match="compressed control record"):
        decode_record(key, b'{"v":1,"z":"bm90IG91cnM="}')


def test_what_a_contact_replaced_is_not_kept_anywhere():
    """Contacts come every two seconds; a day of them is in no process."""
    state, seen = EMPTY, []
    for at_ms in range(50):
        contact = ContactRecord(source="east", link="dr", at_ms=at_ms, topics=())
        state = state.fold([contact.encode()])
        (held,) = state.records().values()
        seen.append(weakref.ref(held))
    gc.collect()
    assert [each().at_ms for each in seen if each() is not None] == [49]
