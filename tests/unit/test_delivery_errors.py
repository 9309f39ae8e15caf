"""What failed deliveries mean: a record at fault, a lost broker, or only an echo."""

import pytest

from replicator.dataplane.copy import delivery_errors
from replicator.dataplane.copy.delivery_errors import DeliveryErrors
from replicator.errors import RecordRefusedError, UnknownOutcomeError
from replicator.kafka.clients import codes
from replicator.kafka.clients.client import KafkaError, KafkaException

PURGED = KafkaError(codes.PURGE_QUEUE)
REFUSED = KafkaError(KafkaError.MSG_SIZE_TOO_LARGE)
LOST = KafkaError(codes.TIMED_OUT)
CODEC = KafkaError(KafkaError.UNSUPPORTED_COMPRESSION_TYPE)
GIVEN_UP = KafkaException(
    KafkaError(KafkaError._GAPLESS_GUARANTEE, "unable to satisfy gap-less guarantee", fatal=True)
)
ECHO = KafkaException(KafkaError(codes.FATAL))


class GivingUp:
    """As librdkafka 2.16 where it gives up without transactions: reports come behind the fatal error, or never."""

    def __init__(self, told: DeliveryErrors, *reports: KafkaError, raises: int = 0) -> None:
        """The first ``raises`` calls say that the client gave up; then there is one report a call."""
        self._told = told
        self._reports = list(reports)
        self._raises = raises
        self.polls = 0

    def __len__(self) -> int:
        return 1 + len(self._reports)

    def poll(self, _timeout: float) -> int:
        self.polls += 1
        if self.polls <= self._raises:
            raise GIVEN_UP
        if self._reports:
            self._told.report(self._reports.pop(0), None)
        return 0


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


@pytest.mark.parametrize("said", [GIVEN_UP, ECHO])
def test_what_made_the_client_give_up_is_waited_for(said):
    told = deliveries(transactional=False)
    with pytest.raises(KafkaException) as raised:
        told.raise_refusal(GivingUp(told, PURGED, PURGED, CODEC, raises=1), said)
    assert raised.value.args[0].code() == KafkaError.UNSUPPORTED_COMPRESSION_TYPE


def test_a_refused_record_that_is_reported_behind_the_fatal_error_counts():
    told = deliveries(transactional=False)
    with pytest.raises(RecordRefusedError):
        told.raise_refusal(GivingUp(told, PURGED, REFUSED), ECHO)


def test_that_the_client_gave_up_may_be_heard_first_while_its_reports_are_taken():
    told = deliveries(transactional=False)
    with pytest.raises(RecordRefusedError):
        told.raise_refusal(GivingUp(told, REFUSED, raises=1), UnknownOutcomeError("not taken"))


def test_reports_that_never_come_are_not_waited_for_for_long(monkeypatch):
    monkeypatch.setattr(delivery_errors, "REPORTS_SECONDS", 0.05)
    told = deliveries(transactional=False)
    client = GivingUp(told)
    told.raise_refusal(client, ECHO)
    assert client.polls > 1


@pytest.mark.parametrize("transactional", [True, False])
def test_an_error_that_is_not_fatal_is_not_waited_for(transactional):
    told = deliveries(transactional=transactional)
    client = GivingUp(told, PURGED, REFUSED)
    told.raise_refusal(client, KafkaException(LOST))
    assert client.polls == 1
