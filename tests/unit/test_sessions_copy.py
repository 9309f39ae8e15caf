"""A session copies in order, stores what it copied with it, and skips nothing; on clients in memory."""

import pytest
from fake_kafka import Entry, FakeProducer
from hypothesis import given
from hypothesis import strategies as st
from session_lab import CHECKPOINTS, TARGET_LIMIT, SessionLab

from replicator.dataplane.progress.pacing import MIN_COMMIT_SECONDS
from replicator.dataplane.session.session import (
    BATCH_RECORDS,
    HOLD_STEP_SECONDS,
    MARKER_SECONDS,
)
from replicator.dataplane.session.trickle_rest import REST_SECONDS
from replicator.errors import (
    PartitionsRefusedError,
    RecordRefusedError,
    TargetRegressedError,
    TransientBrokerError,
)
from replicator.formats.checkpoint import TargetClaim
from replicator.identifiers import HOPS_HEADER

TOO_LARGE = b"x" * (TARGET_LIMIT + 1)


def numbered(count):
    return [b"%d" % number for number in range(count)]


def test_records_arrive_in_order_with_their_origin_and_the_checkpoint_that_counts_them():
    lab = SessionLab(partitions=2)
    lab.write(*numbered(5))
    lab.write(b"other", None, partition=1)
    lab.copy_all()

    assert lab.values(0) == numbered(5)
    assert lab.values(1) == [b"other", None]
    hops = [dict(each["headers"])[HOPS_HEADER] for each in lab.target.records("orders")]
    assert hops == [b"east/orders/0/%d" % offset for offset in range(5)]
    stored = lab.checkpoints()
    assert (stored["orders", 0].offset, stored["orders", 0].records) == (5, 5)
    assert (stored["orders", 1].offset, stored["orders", 1].position_epoch) == (2, 0)
    assert (lab.counters.outcome.copied, lab.counters.outcome.read) == (7, 7)


def test_the_first_record_that_is_written_is_watched_where_others_before_it_were_dropped():
    lab = SessionLab()
    looped = FakeProducer(lab.source)
    looped.produce(
        "orders", b"back", b"k", 0, None, None, 1000, [(HOPS_HEADER, b"west/orders/0/7")]
    )
    looped.flush()
    lab.write(*numbered(3))
    lab.open()
    watched = []
    produce = lab.session.unit.producer.produce

    def noted(*record):
        watched.append((record[1], record[4] is not None))
        produce(*record)

    lab.session.unit.producer.produce = noted
    lab.session.step()
    assert watched == [(b"0", True), (b"1", False), (b"2", False)]


def test_nothing_is_visible_before_the_commit_and_the_checkpoint_comes_with_it():
    lab = SessionLab()
    lab.write(*numbered(3))
    lab.open()
    lab.session.step()
    assert lab.states[0].position == 3
    assert (lab.values(), lab.checkpoints(), lab.states[0].committed) == ([], {}, 0)
    lab.clock.advance(0.2)
    lab.session.step()
    assert (lab.values(), lab.checkpoints()["orders", 0].offset) == (numbered(3), 3)


def test_a_session_that_is_lost_before_its_commit_leaves_nothing_and_the_next_copies_again():
    lab = SessionLab()
    lab.write(*numbered(3))
    lab.open()
    lab.session.step()
    lab.copy_all()
    assert lab.values() == numbered(3)
    assert lab.counters.outcome.copied == 3


def test_a_record_that_cannot_be_carried_is_quarantined_in_the_transaction_of_its_neighbours():
    lab = SessionLab()
    lab.write(b"before")
    lab.write(b"no time", timestamp=0)
    lab.write(b"after")
    lab.open()
    lab.session.step()
    assert lab.quarantined() == []
    lab.clock.advance(0.2)
    lab.session.step()
    assert (lab.values(), lab.quarantined()) == ([b"before", b"after"], [b"no time"])
    stored = lab.checkpoints()["orders", 0]
    assert (stored.offset, stored.records, stored.quarantined) == (3, 2, 1)
    assert (lab.counters.outcome.read, lab.counters.outcome.quarantined) == (3, 1)


def test_nothing_is_put_into_a_quarantine_topic_that_takes_no_writes():
    lab = SessionLab()
    lab.write(b"before")
    lab.write(b"no time", timestamp=0)
    lab.open()
    writer, asked = lab._context.quarantine, []
    refused = PartitionsRefusedError({("orders", 0): TransientBrokerError("no leader")})

    def ask(state):
        asked.append(state.key)
        raise refused

    writer.ask = ask
    for times in (1, 2):
        with pytest.raises(PartitionsRefusedError):
            lab.session.step()
        assert asked == [("orders", 0)] * times, "each time until it takes writes"
        assert writer.is_needed_by(lab.states[0])
        lab.open()
    assert lab.quarantined() == []
    writer.ask = lambda state: asked.append(state.key)
    lab.step(2)
    assert (lab.quarantined(), len(asked)) == ([b"no time"], 3)
    assert not writer.is_needed_by(lab.states[0])
    lab.write(b"no time either", timestamp=0)
    lab.step(2)
    assert (len(lab.quarantined()), len(asked)) == (2, 3), "it is trusted for a while"
    writer.doubt()
    lab.write(b"nor this", timestamp=0)
    lab.step(2)
    assert len(asked) == 4


def test_a_policy_that_stops_ends_the_partition_before_the_record_and_no_other():
    lab = SessionLab(partitions=2, on_record_error="stop")
    lab.write(b"before")
    lab.write(b"no time", timestamp=0)
    lab.write(b"after")
    lab.write(b"other", partition=1)
    lab.copy_all()
    lab.step(6)
    assert (lab.values(0), lab.values(1), lab.quarantined()) == ([b"before"], [b"other"], [])
    stored = lab.checkpoints()["orders", 0]
    assert (stored.offset, stored.problem) == (1, "TARGET_REFUSES")
    assert [item.partition for item in lab.consumer.assignment()] == [1]


@pytest.mark.parametrize("delivery", ["exactly-once", "at-least-once"])
def test_a_refused_record_ends_the_session_before_its_checkpoint_is_stored(delivery):
    lab = SessionLab(delivery=delivery)
    lab.write(b"a", TOO_LARGE, b"b")
    lab.open()
    with pytest.raises(RecordRefusedError):
        lab.step(3)
    assert lab.checkpoints() == {}


@pytest.mark.parametrize("delivery", ["exactly-once", "at-least-once"])
@pytest.mark.parametrize("places", [{0}, {4}, {1, 2, 7}, set(range(8))])
def test_exactly_the_refused_records_are_found_and_quarantined(delivery, places):
    lab = SessionLab(delivery=delivery)
    records = [TOO_LARGE if n in places else b"%d" % n for n in range(8)]
    lab.write(*records)
    lab.open(record_by_record=True)
    lab.step(8)
    fine = [value for value in records if value is not TOO_LARGE]
    # Without transactions what stands before a refused record was written, and is written again.
    copies = lab.values() if delivery == "exactly-once" else list(dict.fromkeys(lab.values()))
    assert copies == fine
    assert len(lab.quarantined()) == len(places)
    stored = lab.checkpoints()["orders", 0]
    assert (stored.offset, stored.quarantined) == (8, len(places))
    assert stored.records == 8 - len(places)
    assert lab.counters.outcome.quarantined == len(places)


def test_a_refused_record_is_found_beside_one_that_cannot_be_carried():
    """The quarantine record of the second is produced into the transaction that the first has failed."""
    lab = SessionLab(queue_records=1)
    lab.write(TOO_LARGE)
    lab.write(b"no time", timestamp=0)
    lab.write(b"after")
    lab.open(record_by_record=True)
    lab.step(4)
    assert (lab.values(), lab.quarantined()) == ([b"after"], [TOO_LARGE, b"no time"])
    assert lab.checkpoints()["orders", 0].offset == 3


def test_a_position_that_is_read_again_is_not_copied_again():
    lab = SessionLab()
    lab.write(*numbered(4))
    lab.open()
    lab.step(3)
    lab.consumer._next["orders", 0] = 1  # as records that were fetched before a seek
    lab.write(b"4")
    lab.step(3)
    assert lab.values() == numbered(5)
    assert lab.checkpoints()["orders", 0].offset == 5


@pytest.mark.parametrize("delivery", ["exactly-once", "at-least-once"])
def test_records_of_older_leaders_are_written_again_beside_one_that_is_refused(delivery):
    lab = SessionLab(delivery=delivery)
    for epoch, values in ((3, (b"a",)), (4, (TOO_LARGE, b"b"))):
        lab.source.leader_epoch = epoch
        lab.write(*values)
    lab.open(record_by_record=True)
    lab.step(6)
    assert lab.examined == set(), "the epoch went back because we did"
    assert list(dict.fromkeys(lab.values())) == [b"a", b"b"]
    assert lab.quarantined() == [TOO_LARGE]
    assert lab.checkpoints()["orders", 0].offset == 3


def test_an_older_leader_epoch_stops_the_partition_for_a_check_after_what_was_copied_is_stored():
    lab = SessionLab()
    lab.source.leader_epoch = 3
    lab.write(b"new")
    lab.open()
    lab.step(2)
    lab.source.leader_epoch = 2
    lab.write(b"old")
    lab.session.step()
    assert lab.examined == {lab.states[0]}
    assert lab.states[0].needs_check
    assert (lab.values(), lab.checkpoints()["orders", 0].offset) == ([b"new"], 1)
    assert lab.consumer.assignment() == []


def test_markers_and_aborted_records_are_stepped_over_and_stored_a_moment_later():
    lab = SessionLab()
    writer = FakeProducer(lab.source, transactional_id="application")
    writer.init_transactions()
    writer.begin_transaction()
    writer.produce("orders", b"aborted", None, 0, timestamp=1)
    writer.flush()
    lab.open()
    lab.session.step()
    assert lab.states[0].position == 0
    writer.abort_transaction()
    lab.write(b"a")
    lab.session.step()
    lab.step(8)
    assert lab.values() == [b"a"]
    assert lab.checkpoints()["orders", 0].offset == 3


def test_a_full_queue_delays_records_and_loses_none():
    lab = SessionLab(queue_records=3)
    lab.write(*numbered(50))
    lab.copy_all()
    assert lab.values() == numbered(50)


def test_a_lane_in_a_backlog_does_not_commit_because_the_next_answer_is_on_its_way(monkeypatch):
    lab = SessionLab()
    lab.write(*numbered(2 * BATCH_RECORDS + 100))
    lab.open()
    lab.session.step()
    with monkeypatch.context() as answer_on_its_way:
        answer_on_its_way.setattr(lab.consumer, "consume", lambda *_: [])
        lab.clock.advance(5 * MIN_COMMIT_SECONDS)
        lab.session.step()
        assert not lab.values(), "a commit would wait for what was just sent"
    lab.session.step()
    with monkeypatch.context() as answer_on_its_way:
        answer_on_its_way.setattr(lab.consumer, "consume", lambda *_: [])
        lab.session.step()
        assert len(lab.values()) == 2 * BATCH_RECORDS, "what is left is no backlog"


def test_without_transactions_the_checkpoint_never_passes_what_was_acknowledged():
    lab = SessionLab(delivery="at-least-once")
    lab.write(*numbered(3))
    lab.open()
    lab.session.step()
    assert (lab.values(), lab.target.records(CHECKPOINTS)) == (numbered(3), [])
    lab.step(3)
    assert lab.checkpoints()["orders", 0].offset == 3


def test_without_transactions_checkpoints_are_stored_without_holding_up_records(monkeypatch):
    lab = SessionLab(delivery="at-least-once")
    lab.write(*numbered(3))
    lab.open()
    lab.step(4)
    waits = []
    flush = FakeProducer.flush
    monkeypatch.setattr(FakeProducer, "flush", lambda *given: waits.append(1) or flush(*given))
    for number in range(3, 9):
        lab.write(b"%d" % number)
        waits.clear()
        lab.step(3)
        assert not waits
        assert lab.checkpoints()["orders", 0].offset == lab.states[0].committed == number + 1
    assert lab.values() == numbered(9)


def test_a_stop_waits_for_checkpoints_that_were_written_before():
    lab = SessionLab(delivery="at-least-once")
    lab.write(*numbered(3))
    lab.open()
    lab.step(4)
    lab.write(b"3")
    lab.session.step()
    lab.clock.advance(0.25)
    lab.session.unit.commit_if_acknowledged()
    lab.session.unit.commit()
    assert lab.checkpoints()["orders", 0].offset == lab.states[0].committed == 4


def test_records_that_are_always_on_their_way_delay_a_checkpoint_by_four_intervals_at_most(
    monkeypatch,
):
    lab = SessionLab(delivery="at-least-once")
    lab.write(*numbered(1))
    lab.open()
    lab.step(4)
    monkeypatch.setattr(FakeProducer, "poll", lambda *_: 0)  # acknowledged by flushes alone
    for number in range(1, 8):
        lab.write(b"%d" % number)
        lab.step()
    assert 4 <= lab.checkpoints()["orders", 0].offset < 8


RECORD = st.tuples(st.integers(0, 2), st.sampled_from(["plain", "no time", "too large"]))
ROUND = st.tuples(st.lists(RECORD, max_size=12), st.integers(0, 3), st.booleans())


@given(st.lists(ROUND, max_size=6), st.integers(2, 40))
def test_each_record_arrives_once_and_in_order_with_any_losses_and_refusals(rounds, queue):
    lab = SessionLab(partitions=3, queue_records=queue)
    lab.open()
    written = {0: [], 1: [], 2: []}
    number = 0
    for records, steps, process_dies in rounds:
        for partition, kind in records:
            number += 1
            value = b"%d" % number + (TOO_LARGE if kind == "too large" else b"")
            lab.write(value, partition=partition, timestamp=0 if kind == "no time" else 1000)
            written[partition].append((kind, value))
        ended = process_dies
        try:
            lab.step(steps)
        except RecordRefusedError:
            ended = True
        if ended:
            lab.open(record_by_record=True)
    lab.copy_all()

    for partition, records in written.items():
        assert lab.values(partition) == [value for kind, value in records if kind == "plain"]
    refused = [value for each in written.values() for kind, value in each if kind != "plain"]
    assert sorted(lab.quarantined()) == sorted(refused)
    assert lab.counters.outcome.copied + len(refused) == number


def test_a_marker_behind_the_last_record_keeps_that_records_epoch():
    lab = SessionLab()
    writer = FakeProducer(lab.source, transactional_id="app")
    writer.init_transactions()
    lab.source.leader_epoch = 4
    writer.begin_transaction()
    for value in numbered(3):
        writer.produce("orders", value, b"k", 0, None, None, 1000)
    writer.commit_transaction()
    lab.copy_all()

    stored = lab.checkpoints()["orders", 0]
    assert (stored.offset, stored.record_end, stored.position_epoch) == (4, 3, 4)


def test_a_marker_of_a_newer_epoch_does_not_lend_it_to_the_record():
    lab = SessionLab()
    lab.write(*numbered(3))
    lab.copy_all()
    stored = lab.checkpoints()["orders", 0]
    assert (stored.offset, stored.record_end, stored.position_epoch) == (3, 3, 0)

    lab.source.leader_epoch = 7
    lab.source.append("orders", 0, Entry(None))
    lab.open()
    lab.step(6)
    stored = lab.checkpoints()["orders", 0]
    assert (stored.offset, stored.record_end, stored.position_epoch) == (4, 3, 0)


def test_a_record_in_the_place_of_a_marker_shows_that_the_log_is_a_different_one():
    lab = SessionLab()
    writer = FakeProducer(lab.source, transactional_id="app")
    writer.init_transactions()
    writer.begin_transaction()
    for value in numbered(3):
        writer.produce("orders", value, b"k", 0, None, None, 1000)
    writer.commit_transaction()
    lab.copy_all()
    del lab.source.logs["orders", 0][3:]
    lab.write(b"another", b"log")
    lab.open()
    lab.step(2)

    assert lab.examined == {lab.states[0]}
    assert lab.states[0].diverged
    assert lab.values() == numbered(3)


def test_a_record_stored_below_what_the_target_had_reached_ends_the_session_before_its_commit():
    lab = SessionLab()
    lab.write(*numbered(5))
    lab.open()
    lab.states[0].target.adopt(TargetClaim("A", 0, 0))
    lab.step(4)
    assert lab.checkpoints()["orders", 0].target == TargetClaim("A", 5, 0, 4)
    assert lab.states[0].target.end == 6  # with the marker
    del lab.target.logs["orders", 0][2:]
    lab.write(b"5")
    with pytest.raises(TargetRegressedError, match="offset 2 of a log that reached 6"):
        lab.step(4)
    assert lab.checkpoints()["orders", 0].offset == 5


def test_records_of_others_on_the_target_are_counted_by_the_next_report():
    lab = SessionLab()
    lab.write(*numbered(5))
    lab.open()
    lab.states[0].target.adopt(TargetClaim("A", 0, 0))
    lab.step(4)
    others = FakeProducer(lab.target)
    for _ in range(10):
        others.produce("orders", b"other", b"k", 0)
    others.flush()
    lab.write(b"5")
    lab.step(4)
    assert lab.states[0].target.end == len(lab.target.logs["orders", 0])


def test_a_lane_that_has_caught_up_rests_while_the_markers_of_its_transaction_are_written():
    lab = SessionLab()
    lab.write(*numbered(3))
    lab.open()
    lab.session.step()
    lab.clock.advance(0.2)
    lab.clock.slept_seconds.clear()
    lab.session.step()
    assert (lab.values(), lab.clock.slept_seconds) == (numbered(3), [MARKER_SECONDS])


def test_without_transactions_there_are_no_markers_to_wait_for():
    lab = SessionLab(delivery="at-least-once")
    lab.write(*numbered(3))
    lab.copy_all()
    assert MARKER_SECONDS not in lab.clock.slept_seconds


@pytest.mark.parametrize(
    ("found", "delivery", "rests"),
    [
        (3, "at-least-once", []),
        (20, "at-least-once", [REST_SECONDS]),
        (BATCH_RECORDS, "at-least-once", []),
        (20, "exactly-once", []),
    ],
)
def test_a_lane_that_reads_a_trickle_rests_and_one_that_reads_a_backlog_does_not(
    found, delivery, rests
):
    lab = SessionLab(delivery=delivery)
    lab.write(*numbered(found))
    lab.open()
    lab.clock.slept_seconds.clear()
    lab.session.step()
    assert lab.clock.slept_seconds == rests


def test_a_lane_that_only_drops_what_comes_back_to_it_rests_as_well():
    lab = SessionLab(delivery="at-least-once")
    looped = FakeProducer(lab.source)
    for _ in range(20):
        looped.produce(
            "orders", b"", b"k", 0, None, None, 1000, [(HOPS_HEADER, b"west/orders/0/7")]
        )
    looped.flush()
    lab.open()
    lab.clock.slept_seconds.clear()
    lab.session.step()
    assert (lab.clock.slept_seconds, lab.counters.outcome.copied) == ([REST_SECONDS], 0)


@pytest.mark.parametrize(("polls_until_acknowledged", "held"), [(3, 2), (None, 46)])
def test_a_trickle_waits_for_what_is_on_its_way_but_not_for_ever(
    polls_until_acknowledged, held, monkeypatch
):
    polls, poll = [], FakeProducer.poll

    def late(producer, timeout=0):
        polls.append(timeout)
        late_enough = polls_until_acknowledged and len(polls) > polls_until_acknowledged
        return poll(producer, timeout) if late_enough else 0

    monkeypatch.setattr(FakeProducer, "poll", late)
    lab = SessionLab(delivery="at-least-once")
    lab.write(*numbered(20))
    lab.open()
    lab.clock.slept_seconds.clear()
    polls.clear()
    lab.session.step()
    assert lab.clock.slept_seconds == [REST_SECONDS] + [HOLD_STEP_SECONDS] * held
    assert (len(lab.session.unit.producer) == 0) == bool(polls_until_acknowledged)
