"""Which first records are watched, and what follows from what is reported of them."""

import pytest

from replicator.dataplane.progress.first_writes import KNOWN_SECONDS, FirstWrites
from replicator.errors import UnknownOutcomeError
from replicator.kafka.clients.client import KafkaError
from replicator.testing import ManualClock


class ScriptedProducer:
    """Has records under way until it was flushed so many times."""

    def __init__(self, *, flushes: int = 1) -> None:
        self.left = flushes
        self.flushed = 0

    def flush(self, _timeout: float) -> int:
        self.flushed += 1
        self.left = max(0, self.left - 1)
        return self.left


class Arrived:
    """A delivered message, as far as anybody looks at it."""

    def __init__(self, offset: int | None) -> None:
        self._offset = offset

    def offset(self) -> int | None:
        return self._offset


def watched(*, transactional=True, producer=None, clock=None, failed=False, give_up=False):
    return FirstWrites(
        producer or ScriptedProducer(),
        clock=clock or ManualClock(),
        transactional=transactional,
        failed=lambda: failed,
        give_up=lambda: give_up,
    )


def test_only_the_first_record_of_a_partition_is_reported():
    writes = watched()
    assert writes.report_for("t", 0, None) is not None
    assert writes.report_for("t", 1, None) is not None
    assert writes.report_for("t", 0, None) is None
    assert writes.report_for("t", 0, print) is print


def test_after_a_while_the_broker_may_have_forgotten_the_producer():
    clock = ManualClock()
    writes = watched(clock=clock)
    writes.report_for("t", 0, None)
    clock.advance(KNOWN_SECONDS)
    assert writes.report_for("t", 0, None) is None
    clock.advance(1)
    assert writes.report_for("t", 0, None) is not None


def test_a_record_with_an_offset_lets_the_commit_pass_and_others_learn_of_it():
    heard = []
    writes = watched()
    writes.report_for("t", 0, lambda error, message: heard.append((error, message.offset())))(
        None, Arrived(0)
    )
    writes.confirm()
    assert heard == [(None, 0)]


@pytest.mark.parametrize("offset", [None, -1, -1001])
def test_a_record_without_an_offset_stops_the_commit_until_it_is_aborted(offset):
    writes = watched()
    writes.report_for("t", 0, None)(None, Arrived(offset))
    with pytest.raises(UnknownOutcomeError, match="does not say where") as caught:
        writes.confirm()
    assert caught.value.subject == "t/0"
    writes.clear()
    writes.confirm()


def test_a_refused_record_is_the_commits_business_and_the_next_is_a_first_one_again():
    writes = watched()
    writes.report_for("t", 0, None)(KafkaError(KafkaError.MSG_SIZE_TOO_LARGE), Arrived(None))
    writes.confirm()
    assert writes.report_for("t", 0, None) is not None


def test_a_commit_waits_for_the_report_but_not_in_a_transaction_that_has_failed():
    producer = ScriptedProducer(flushes=3)
    writes = watched(producer=producer)
    writes.report_for("t", 0, None)
    writes.confirm()
    assert producer.flushed == 3

    failed = ScriptedProducer(flushes=100)
    writes = watched(producer=failed, failed=True)
    writes.report_for("t", 0, None)
    writes.confirm()
    assert failed.flushed == 1


def test_a_lane_that_must_stop_does_not_wait_for_a_silent_target():
    writes = watched(producer=ScriptedProducer(flushes=100), give_up=True)
    writes.report_for("t", 0, None)
    with pytest.raises(UnknownOutcomeError, match="did not acknowledge"):
        writes.confirm()


def test_where_only_failures_are_reported_nothing_follows_a_first_record_too_soon():
    producer = ScriptedProducer()
    writes = watched(producer=producer, transactional=False)
    assert writes.report_for("t", 0, None) is None
    writes.wait_after("t", 0)
    writes.wait_after("t", 0)
    assert producer.flushed == 1
