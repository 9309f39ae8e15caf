"""Failed deliveries, kept until the lane looks at them.

Most of what a broken transaction reports follows from something else: purged records, records that
shared a batch with a bad one. Only two things count: a record that the target will never take, and
otherwise the client's own error, which may be that another owner fenced this one.
"""

import time
from typing import cast

from replicator.errors import RecordRefusedError
from replicator.kafka.clients import codes
from replicator.kafka.clients.client import KafkaError, KafkaException, Producer

RECORD_REFUSALS = frozenset(
    {
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError.INVALID_MSG,
        KafkaError.INVALID_TIMESTAMP,
        KafkaError.INVALID_RECORD,
        KafkaError.RECORD_LIST_TOO_LARGE,
        codes.INVALID_DIFFERENT_RECORD,
        KafkaError.UNSUPPORTED_FOR_MESSAGE_FORMAT,
    }
)
"""Errors of a produced batch that retrying does not mend: some record in it is at fault."""

CODEC_REFUSED = KafkaError.UNSUPPORTED_COMPRESSION_TYPE
"""The target takes no batch that is compressed so, whatever its records are."""

PURGED = frozenset({codes.PURGE_QUEUE, codes.PURGE_INFLIGHT})
"""What happens to records that are not at fault when a transaction is aborted."""

REPORTS_SECONDS = 2.0
"""How long the reports behind a fatal error are waited for at most."""

_STEP_SECONDS = 0.01


class DeliveryErrors:
    """The failed deliveries of one session; used by the lane's thread only."""

    def __init__(self, *, transactional: bool, attributed: bool = False) -> None:
        """``attributed``: another part knows which record each failure belongs to."""
        self._transactional = transactional
        self._attributed = attributed
        self._errors: list[KafkaError] = []

    @property
    def failed(self) -> bool:
        """Whether any record failed since the lane last looked."""
        return bool(self._errors)

    def report(self, error: KafkaError | None, _message: object) -> None:
        """The client's delivery report; called from inside its ``poll`` and ``flush``."""
        if error is not None:
            self._errors.append(error)

    def clear(self) -> None:
        """The unit was aborted, and with it whatever failed in it."""
        self._errors.clear()

    def check(self) -> None:
        """Raises for failed records; a refused record counts before an error of the broker.

        Purged records alone raise nothing in a transaction: it cannot be committed any more, and
        the commit will say why. Without transactions nothing else would.

        Raises:
            RecordRefusedError: the target will never take one of the records.
            KafkaException: anything else.
        """
        if not self._errors:
            return
        errors, self._errors = self._errors, []
        _raise_refusal(errors)
        causes = [error for error in errors if error.code() not in PURGED]
        if causes or not self._transactional:
            raise KafkaException((causes or errors)[0])

    def raise_refusal(self, producer: Producer, error: Exception) -> None:
        """After the client failed with ``error``: raises where a refused record was the cause.

        In a transaction the client keeps the first failure, and a commit gives it; without one the
        delivery reports do. Where neither names a record, this returns and ``error`` stands.

        Raises:
            RecordRefusedError: the target will never take one of the records.
            KafkaException: the first failure of the transaction, or a refused compression, where ``error`` is only its echo.
        """
        if self._attributed:
            return
        self._take_reports(producer, error)
        errors, self._errors = self._errors, []
        if isinstance(error, KafkaException):
            said: KafkaError = error.args[0]
            if self._transactional and said.code() == codes.ERRONEOUS_STATE:
                cause = _cause(producer)
                if cause is not None:
                    _raise_refusal([*errors, cause])
                    raise KafkaException(cause) from error
            errors.append(said)
        _raise_refusal(errors)
        for each in errors:
            if each.code() == CODEC_REFUSED:
                raise KafkaException(each) from error

    def _take_reports(self, producer: Producer, error: Exception) -> None:
        """Takes in what there is to come of the failure.

        Without transactions a client that gives up for good says so first, in whatever is called next, and reports
        the records that made it do so a moment later (librdkafka 2.16: from another thread).
        """
        if self._transactional:
            producer.poll(0)
            return
        fatal, until = _is_fatal(error), time.monotonic() + REPORTS_SECONDS
        while True:
            try:
                producer.poll(_STEP_SECONDS if fatal else 0)
            except KafkaException as said:
                fatal = fatal or _is_fatal(said)
            if not fatal or not len(producer) or self._told() or time.monotonic() >= until:
                return

    def _told(self) -> bool:
        return any(error.code() not in PURGED for error in self._errors)


def _is_fatal(error: Exception) -> bool:
    if not isinstance(error, KafkaException):
        return False
    said: KafkaError = error.args[0]
    return said.fatal() or said.code() == codes.FATAL


def _cause(producer: Producer) -> KafkaError | None:
    """Why a transaction takes no more records; it cannot be committed, so asking changes nothing."""
    try:
        producer.commit_transaction(1.0)
    except KafkaException as error:
        return cast("KafkaError", error.args[0])
    return None


def _raise_refusal(errors: list[KafkaError]) -> None:
    for error in errors:
        if error.code() in RECORD_REFUSALS:
            raise RecordRefusedError(error.str(), subject=error.name())
