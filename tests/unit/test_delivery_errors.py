"""What failed deliveries mean: a record at fault, a lost broker, or only an echo."""

import pytest

from replicator.dataplane.copy.delivery_errors import DeliveryErrors
from replicator.errors import RecordRefusedError
from replicator.kafka.clients import codes
from replicator.kafka.clients.client import KafkaError, KafkaException

PURGED = KafkaError(codes.PURGE_QUEUE)
REFUSED = KafkaError(KafkaError.MSG_SIZE_TOO_LARGE)
LOST = KafkaError(codes.TIMED_OUT)


def deliveries(*errors: KafkaError | None, transactional: bool = True) -> DeliveryErrors:
    found = DeliveryErrors(transactional=transactional)
    for error in errors:
        found.report(error, None)
    return found


def test_nothing_is_reported_where_nothing_failed():
    fine = deliveries(None, None)
    fine.check()
    assert not fine.failed


def test_a_refused_record_counts_before_anything_else_that_is_reported():
    with pytest.raises(RecordRefusedError) as raised:
        deliveries(PURGED, LOST, REFUSED).check()
    assert raised.value.subject == "MSG_SIZE_TOO_LARGE"


def test_the_most_telling_error_is_raised():
    with pytest.raises(KafkaException) as raised:
        deliveries(PURGED, LOST).check()
    assert raised.value.args[0].code() == codes.TIMED_OUT


def test_an_echo_of_a_broken_transaction_leaves_the_error_to_the_commit():
    broken = deliveries(PURGED)
    broken.check()
    assert not broken.failed


def test_without_transactions_no_failure_is_silent():
    with pytest.raises(KafkaException):
        deliveries(PURGED, transactional=False).check()


def test_what_was_rolled_back_is_forgotten():
    taken_back = deliveries(REFUSED)
    taken_back.clear()
    taken_back.check()
