"""Whether a request that ended a transaction may still be under way: then its producer ends no other.

librdkafka (2.16) speaks the first version of the transaction protocol, in which all transactions of a
producer have one epoch. When the connection to the coordinator breaks it sends the request again on
another, and reports the answer to that one; the first may arrive later, and then ends whatever
transaction is open (KAFKA-17754). Only a new producer fences it: `init_transactions` raises the epoch.

The library calls no error callback for that connection, but it logs each loss, a repeated text at most
every 30 s. docs/decisions/a-late-end-of-a-transaction.md
"""

import contextlib
import logging
import time
from collections.abc import Callable, Iterator
from typing import Protocol

from replicator.kafka.clients.client import KafkaException
from replicator.kafka.clients.errors import bare_errors_as_exceptions
from replicator.kafka.clients.metadata_log import MetadataLog
from replicator.kafka.clients.settings import LOGGER, Config

RESENT_SECONDS = 0.08
"""Nothing is sent again sooner: the library waits `retry.backoff.ms`, 100 by default, less 20 %."""

REPEATED_SECONDS = 30.0
"""For so long the library does not log the same text again."""

_LOST = ("FAIL", "REQTMOUT")


class Polled(Protocol):
    """A producer, as far as it is served here."""

    def poll(self, timeout: float, /) -> int:
        """Serves what the library has queued: reports, and lines of its log."""
        ...


def end_in_doubt(*, lost_meanwhile: bool, lost_lately: bool, seconds: float) -> bool:
    """Decides whether a transaction that was ended, well or not, may have been ended twice.

    Args:
        lost_meanwhile: the connection to the coordinator was lost between request and answer.
        lost_lately: it was lost so shortly before that another loss may not have been logged.
        seconds: from request to answer.
    """
    return lost_meanwhile or (lost_lately and seconds >= RESENT_SECONDS)


class CoordinatorWatch:
    """Of one producer; gets the library's log instead of a logger, and passes warnings on."""

    def __init__(
        self,
        *,
        metadata: MetadataLog | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """``metadata`` gets the lines that are about it, where somebody wants to know."""
        self._metadata = metadata
        self._monotonic = monotonic
        self._lost_at: float | None = None
        self._losses = 0
        self.in_doubt = False
        """Once true it stays so: this producer ends no transaction any more."""

    def settings(self) -> Config:
        """What the producer is configured with to be watched."""
        # Losses are logged as information; everything below a warning ends here.
        asked = {"log_level": 6} if self._metadata is None else self._metadata.settings()
        return {"logger": self, **asked}

    def log(self, level: int, form: str, *parts: object) -> None:
        """Takes a line of the library's log; called from inside ``poll``, ``flush`` and the like."""
        if parts and parts[0] in _LOST and is_loss(str(parts[-1])):
            self._losses += 1
            self._lost_at = self._monotonic()
        if self._metadata is not None and parts and parts[0] == "METADATA":
            self._metadata.take(str(parts[-1]))
        if level >= logging.WARNING:
            LOGGER.log(level, form, *parts)

    @contextlib.contextmanager
    def ending(self, producer: Polled) -> Iterator[None]:
        """Around a commit or an abort; ``in_doubt`` says afterwards whether it may come again."""
        _serve(producer)
        losses, begun = self._losses, self._monotonic()
        lately = self._lost_at is not None and begun - self._lost_at < REPEATED_SECONDS
        try:
            yield
        finally:
            seconds = self._monotonic() - begun
            _serve(producer)
            if end_in_doubt(
                lost_meanwhile=self._losses != losses, lost_lately=lately, seconds=seconds
            ):
                self.in_doubt = True


def is_loss(text: str) -> bool:
    """Whether a line says that an established connection to the coordinator was lost."""
    return "TxnCoordinator" in text and ("in state UP" in text or "in flight" in text)


def _serve(producer: Polled) -> None:
    with contextlib.suppress(KafkaException, SystemError), bare_errors_as_exceptions():
        producer.poll(0)  # a fenced producer raises here; the call it is about says so too
