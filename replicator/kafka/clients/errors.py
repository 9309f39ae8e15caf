"""The one place where errors of the client library become ours.

The library often reports only that nothing answered, and tells the reason (a wrong password, a
certificate) beside the call. ``ConnectionTrouble`` keeps that reason, so that the person who reads
the error sees the cause and not the symptom.
"""

# ruff: noqa: SLF001 - librdkafka begins the names of its local errors with an underscore

import contextlib
import re
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from confluent_kafka import KafkaError, KafkaException

from replicator.errors import (
    AuthenticationFailedError,
    BrokerRefusedError,
    FencedError,
    InputError,
    ReplicatorError,
    TransientBrokerError,
    UnknownOutcomeError,
    UnreachableError,
)
from replicator.kafka.clients.error_table import MEANINGS, Meaning

_CAUSES = (KafkaError._AUTHENTICATION, KafkaError._SSL, KafkaError._RESOLVE, KafkaError._TRANSPORT)
_SYMPTOMS = frozenset(
    {
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._TRANSPORT,
        KafkaError._TIMED_OUT,
        KafkaError._TIMED_OUT_QUEUE,
        KafkaError._MSG_TIMED_OUT,
        KafkaError._WAIT_COORD,
    }
)
_LATE = frozenset({KafkaError._TIMED_OUT, KafkaError._TIMED_OUT_QUEUE, KafkaError._MSG_TIMED_OUT})
_BROKER = re.compile(r"^(?:\w+://)?(\S+:\d+)/(\d+|bootstrap): ")
"""How the library begins what it says of one broker: ``SASL_SSL://kafka-2.example:9093/2: ...``."""

_TLS_HINTS: tuple[tuple[str, str, str], ...] = (
    (
        "hostname mismatch",
        "the broker's certificate is for another host name",
        "Use a name that stands in the certificate, in bootstrapServers and in the advertised listeners.",
    ),
    (
        "ip address mismatch",
        "the broker's certificate is for another host name",
        "Use a name that stands in the certificate, in bootstrapServers and in the advertised listeners.",
    ),
    (
        "has expired",
        "the broker's certificate has expired",
        "Renew the brokers' certificates.",
    ),
    (
        "certificate verify failed",
        "the broker's certificate is not signed by an authority we trust",
        "Set security.ca to the certificate authority of this cluster.",
    ),
    (
        "certificate required",
        "the broker asks for a client certificate",
        "Set security.certificate and security.key.",
    ),
    (
        "bad certificate",
        "the broker does not accept our certificate",
        "Check security.certificate and security.key.",
    ),
    (
        "unknown ca",
        "the broker does not know the authority of our certificate",
        "Use a certificate that an authority of this cluster has signed.",
    ),
    (
        "plaintext",
        "the listener does not speak TLS",
        "Set security.protocol to PLAINTEXT or SASL_PLAINTEXT, or use the TLS port.",
    ),
    (
        "wrong version number",
        "the listener does not speak TLS",
        "Set security.protocol to PLAINTEXT or SASL_PLAINTEXT, or use the TLS port.",
    ),
)
_TLS_DEFAULT = (
    "the TLS handshake failed",
    "Check ca, certificate and key of the cluster's security block.",
)


class ConnectionTrouble:
    """Remembers why connections failed lately; pass it as ``on_error`` and to ``kafka_errors``.

    Thread-safe. What is older than ``keep_seconds`` is not held against a later failure. That no broker is left
    the library says once, when the last one is lost (librdkafka 2.16): it holds as long as failures follow.
    """

    def __init__(
        self, *, keep_seconds: float = 30.0, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._keep_seconds = keep_seconds
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._last: dict[int, tuple[float, KafkaError]] = {}
        self._newest_at = float("-inf")
        self._none_left = False

    def __call__(self, error: KafkaError) -> None:
        """Takes an error the library reports beside any call."""
        now, code = self._monotonic(), error.code()
        with self._lock:
            if code == KafkaError._ALL_BROKERS_DOWN:
                self._none_left = True
            elif code in _CAUSES:
                # Identical failures of a broker are told every 30 seconds.
                self._none_left = self._none_left and now - self._newest_at < 2 * self._keep_seconds
                self._last[code] = (now, error)
            else:
                return
            self._newest_at = now

    def cause(self) -> KafkaError | None:
        """The most telling recent reason: a refused login before TLS, names, and refused ports.

        A refused port is that of one broker; where no broker was left the error is ``_ALL_BROKERS_DOWN``, with
        the words of the last one.
        """
        oldest = self._monotonic() - self._keep_seconds
        with self._lock:
            recent = {code: error for code, (at, error) in self._last.items() if at >= oldest}
            none_left = self._none_left
        found = next((recent[code] for code in _CAUSES if code in recent), None)
        if found is not None and none_left and found.code() == KafkaError._TRANSPORT:
            return KafkaError(KafkaError._ALL_BROKERS_DOWN, found.str())
        return found

    def clear(self) -> None:
        """Forgets everything, after something succeeded."""
        with self._lock:
            self._last.clear()
            self._none_left = False


class bare_errors_as_exceptions:  # noqa: N801 - used as contextlib's are
    """Around calls of the client library: what it raises is an exception.

    It was seen to raise the ``KafkaError`` of a fenced producer as it is, which is no exception: no ``except`` clause
    names it, not even ``BaseException``, so the thread ended without a word.
    """

    def __enter__(self) -> None:
        return None

    def __exit__(self, *raised: object) -> None:
        error = raised[1]
        if isinstance(error, KafkaError):
            raise KafkaException(error) from None


def map_kafka_error(
    error: KafkaError,
    *,
    subject: str,
    doing: str,
    cause: KafkaError | None = None,
    unknown_on_timeout: bool = False,
) -> ReplicatorError:
    """Our error for one of the library's.

    Args:
        error: what a call reported.
        subject: what it is about, such as ``cluster:east`` or a topic.
        doing: what was tried, to go after "cannot": ``read the settings of 3 topics``.
        cause: why connections failed at that time, see ``ConnectionTrouble``.
        unknown_on_timeout: whether no answer leaves it open if the request took effect.
    """
    if unknown_on_timeout and (
        error.code() in _SYMPTOMS or error.code() == KafkaError.REQUEST_TIMED_OUT
    ):
        return UnknownOutcomeError(
            f"no answer whether this took effect: {doing} ({_words(cause or error)})",
            subject=subject,
            remedy="The stored state is read again before going on.",
        )
    late = ""
    if cause is not None and error.code() in _SYMPTOMS:
        if error.code() == KafkaError._ALL_BROKERS_DOWN and cause.code() == KafkaError._TRANSPORT:
            cause = KafkaError(KafkaError._ALL_BROKERS_DOWN, cause.str())
        elif error.code() in _LATE and cause.code() == KafkaError._TRANSPORT:
            late = "no answer in time; "
        error = cause
    meaning = _meaning(error)
    what = late + (meaning.what or _words(error))
    message = f"cannot {doing}: {what}"
    detail = _words(error)
    if detail.lower() not in message.lower():
        message += f" ({detail})"
    return meaning.error(message, subject=subject, remedy=meaning.remedy)


@contextlib.contextmanager
def kafka_errors(
    subject: str,
    doing: str,
    *,
    trouble: ConnectionTrouble | None = None,
) -> Iterator[None]:
    """Maps every error of the client library that leaves the block; see ``map_kafka_error``."""
    try:
        yield
    except KafkaException as error:
        raise map_kafka_error(
            as_kafka_error(error),
            subject=subject,
            doing=doing,
            cause=None if trouble is None else trouble.cause(),
        ) from error


def as_kafka_error(error: BaseException | KafkaError) -> KafkaError:
    """The library's error object inside an exception of it; some of its answers hold it bare."""
    if isinstance(error, KafkaError):
        return error
    inner = error.args[0] if error.args else None
    if isinstance(inner, KafkaError):
        return inner
    return KafkaError(KafkaError._FAIL, str(error))


def _meaning(error: KafkaError) -> Meaning:
    code = error.code()
    if code == KafkaError._SSL:
        what, remedy = _tls(_words(error))
        return Meaning(AuthenticationFailedError, what, remedy)
    if code == KafkaError._FATAL:
        return Meaning(
            FencedError if "fenced" in _words(error).lower() else BrokerRefusedError, "", ""
        )
    lost = code in {KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN}
    if lost and "security.protocol" in _words(error):
        return Meaning(
            UnreachableError,
            "the broker hangs up on us at once",
            "Check security.protocol: this looks like a TLS or SASL listener.",
        )
    known = MEANINGS.get(code)
    named = _BROKER.match(_words(error)) if code == KafkaError._TRANSPORT else None
    if known is not None and named is not None:
        broker = "the broker" if named[2] == "bootstrap" else f"broker {named[2]}"
        return replace(known, what=f"{broker} at {named[1]} does not answer")
    if known is not None:
        return known
    if error.retriable() or error.txn_requires_abort():
        return Meaning(TransientBrokerError, "", "It is tried again by itself.")
    return Meaning(BrokerRefusedError, "", "")


def _tls(words: str) -> tuple[str, str]:
    text = words.lower()
    return next(
        ((what, remedy) for needle, what, remedy in _TLS_HINTS if needle in text), _TLS_DEFAULT
    )


def _words(error: KafkaError) -> str:
    text = str(error.str() or error.name())
    return " ".join(text.split())[:300]


def may_pass(error: ReplicatorError) -> bool:
    """Whether a call with a deadline does well to try again until then.

    Narrower than ``retriable``: a missing right or a wrong password may be mended while we run, but
    hardly within one call.
    """
    return isinstance(error, UnreachableError | TransientBrokerError)


def setting_refused(error: BaseException, *, subject: str) -> InputError:
    """Our error for settings the library does not accept when a client is made."""
    inner = as_kafka_error(error)
    return InputError(
        f"the client library refuses a setting: {_words(inner)}",
        subject=subject,
        remedy="Correct the kafka or security block of this cluster.",
    )
