"""How a lane goes over to whole batches: record by record first, for as long as readers may not know its producer id."""

from dataclasses import dataclass, replace

from session_lab import SETTINGS

from replicator.dataplane.lane.unseen_id import UnseenId, records_reason
from replicator.dataplane.session.clients_protocol import UnseenProducer
from replicator.dataplane.transport.spec import LaneSpec
from replicator.testing import ManualClock
from replicator.topology.plan import ClusterPlan

BATCHES = LaneSpec(
    topology="lab", link="link", source=ClusterPlan("east", ("east:9092",)),
    target=ClusterPlan("west", ("west:9092",)), lane=0, layout_epoch=1,
    settings=replace(SETTINGS, engine="batches", provenance="path"), work=(),
)  # fmt: skip
RECORDS = replace(BATCHES, settings=replace(BATCHES.settings, engine="records"))


@dataclass
class Copying:
    """What is asked of a session's clients."""

    spec: LaneSpec
    record_by_record: bool = False


def test_a_lane_copies_record_by_record_until_its_id_was_seen_and_then_whole_batches():
    clock = ManualClock()
    unseen = UnseenId(clock, goes_on=True)
    assert unseen.spec_now(BATCHES) == BATCHES, "nobody said that it has to wait"
    assert unseen.taken_over(UnseenProducer(7, seen_at=12.0))
    clock.advance(11.9)
    assert unseen.spec_now(BATCHES) == RECORDS
    assert not unseen.is_over(BATCHES, RECORDS)
    clock.advance(0.2)
    assert unseen.is_over(BATCHES, RECORDS)
    assert unseen.spec_now(BATCHES) == BATCHES
    # Registered again by the clients that follow: the first time counts.
    assert not unseen.taken_over(UnseenProducer(7, seen_at=24.1))
    assert not unseen.is_over(BATCHES, BATCHES)
    assert clock.slept_seconds == []


def test_the_reason_for_records_is_told_where_whole_batches_are_ordered_and_only_there():
    one_by_one = Copying(BATCHES, record_by_record=True)
    assert records_reason(BATCHES, Copying(BATCHES)) == ""
    assert records_reason(BATCHES, Copying(RECORDS)) == "new-id"
    assert records_reason(BATCHES, one_by_one) == "refused-record"
    assert records_reason(RECORDS, Copying(RECORDS)) == ""
    assert records_reason(RECORDS, replace(one_by_one, spec=RECORDS)) == ""


def test_another_id_has_to_be_seen_as_well():
    clock = ManualClock()
    unseen = UnseenId(clock, goes_on=True)
    assert unseen.taken_over(UnseenProducer(7, seen_at=12.0))
    clock.advance(12.0)
    assert unseen.taken_over(UnseenProducer(8, seen_at=24.0))
    assert unseen.spec_now(BATCHES) == RECORDS


def test_a_lane_whose_id_is_known_and_one_of_records_never_change():
    unseen = UnseenId(ManualClock(), goes_on=True)
    assert not unseen.taken_over(None)
    assert unseen.spec_now(BATCHES) is BATCHES
    assert unseen.spec_now(RECORDS) is RECORDS
    assert not unseen.is_over(RECORDS, RECORDS)


def test_a_range_that_never_was_copied_record_by_record_waits():
    clock = ManualClock(monotonic=5.0)
    unseen = UnseenId(clock, goes_on=False)
    assert not unseen.taken_over(UnseenProducer(7, seen_at=12.0))
    assert clock.slept_seconds == [7.0]
    assert unseen.spec_now(BATCHES) is BATCHES
