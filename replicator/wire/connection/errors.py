"""Error codes of the protocol, and failures of sockets, as errors of our tree."""

import ssl

from replicator.errors import (
    TRIED_AGAIN,
    AuthenticationFailedError,
    AuthorizerMissingError,
    BrokerRefusedError,
    NotAuthorizedError,
    NotFoundError,
    RecordRefusedError,
    ReplicatorError,
    SourceDataLostError,
    TransientBrokerError,
    UnreachableError,
    UnsupportedBrokerError,
)
from replicator.wire.connection.protocol import for_code

_CLASSES: dict[int, type[ReplicatorError]] = {
    1: SourceDataLostError,
    3: NotFoundError,
    10: RecordRefusedError,
    18: RecordRefusedError,
    29: NotAuthorizedError,
    30: NotAuthorizedError,
    31: NotAuthorizedError,
    32: RecordRefusedError,
    33: AuthenticationFailedError,
    34: AuthenticationFailedError,
    35: UnsupportedBrokerError,
    53: NotAuthorizedError,
    54: AuthorizerMissingError,
    58: AuthenticationFailedError,
    69: NotFoundError,
    87: RecordRefusedError,
    100: NotFoundError,
}
_REMEDIES: dict[type[ReplicatorError], str] = {
    AuthenticationFailedError: "Check the cluster's security block; secrets are read again each time.",
    AuthorizerMissingError: "Set sync.acls to false, or authorizer.class.name on the brokers of this cluster.",
    NotAuthorizedError: "Allow it by an ACL for our user.",
    SourceDataLostError: "Its records were removed by retention, or the topic was recreated.",
    TransientBrokerError: TRIED_AGAIN,
    UnsupportedBrokerError: "Use a cluster of Kafka 3.0 or later.",
}


def code_error(
    code: int, *, subject: str, doing: str, detail: str = "", right: str = ""
) -> ReplicatorError:
    """Our error for an error code of a response; ``right`` is what our user lacks if it is refused."""
    theirs = for_code(code)
    kind = _CLASSES.get(code)
    if kind is None:
        kind = TransientBrokerError if theirs.retriable else BrokerRefusedError
    words = detail or getattr(theirs, "description", "") or theirs.__name__
    return kind(
        f"cannot {doing}: {' '.join(words.split()).rstrip('.')} (error {code})",
        subject=subject,
        remedy=(
            f"Allow {right} by an ACL for our user."
            if right and kind is NotAuthorizedError
            else _REMEDIES.get(kind, "")
        ),
    )


def socket_error(error: OSError, *, subject: str, where: str) -> ReplicatorError:
    """Our error for a connection that failed or was never made."""
    if isinstance(error, ssl.SSLError):
        return AuthenticationFailedError(
            f"the TLS handshake with {where} failed: {error.reason or error}",
            subject=subject,
            remedy="Check security.protocol, ca, certificate and key, and that the name stands in the broker's certificate.",
        )
    words = "no answer in time" if isinstance(error, TimeoutError) else error.strerror or str(error)
    return UnreachableError(
        f"{where} does not answer: {words}",
        subject=subject,
        remedy="Check that the brokers run and that bootstrapServers can be reached from here.",
    )
