"""Secrets, read at the moment they are needed and never kept in a plan.

It stands beside SecretRef, below both rooms that open connections: the client library's and the one
that speaks the protocol itself. A file is read again each time, because Kubernetes rotates mounted
secrets in place.
"""

import os
from dataclasses import dataclass, field
from pathlib import Path

from replicator.errors import SecretUnavailableError
from replicator.identifiers import ClusterAlias
from replicator.topology.plan import ClusterPlan, Mechanism, Protocol, SecretRef


@dataclass(frozen=True, slots=True)
class ResolvedSecurity:
    """Everything a client needs to connect, in plain text; secrets stay out of ``repr``.

    ``ca``, ``certificate`` and ``key`` are PEM text.
    """

    protocol: Protocol
    mechanism: Mechanism | None = None
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    ca: str | None = field(default=None, repr=False)
    certificate: str | None = field(default=None, repr=False)
    key: str | None = field(default=None, repr=False)
    key_password: str | None = field(default=None, repr=False)


def resolve_security(cluster: ClusterPlan) -> ResolvedSecurity:
    """Reads all secrets of a cluster now.

    Raises:
        SecretUnavailableError: one is missing, unreadable or empty; says which and where.
    """
    plan = cluster.security

    def read(name: str, reference: SecretRef | None) -> str | None:
        return None if reference is None else read_secret(reference, cluster.alias, name)

    return ResolvedSecurity(
        protocol=plan.protocol,
        mechanism=plan.mechanism,
        username=read("username", plan.username),
        password=read("password", plan.password),
        ca=read("ca", plan.ca),
        certificate=read("certificate", plan.certificate),
        key=read("key", plan.key),
        key_password=read("keyPassword", plan.key_password),
    )


def read_secret(reference: SecretRef, alias: ClusterAlias, name: str) -> str:
    """Reads one secret; line ends at its end do not belong to it.

    Raises:
        SecretUnavailableError: it is missing, unreadable or empty.
    """
    subject = f"cluster:{alias}"
    if reference.literal is not None:
        return reference.literal
    if reference.env is not None:
        text = os.environ.get(reference.env)
        place = f"environment variable {reference.env}"
        if text is None:
            raise SecretUnavailableError(
                f"security.{name} is to come from {place}, which is not set",
                subject=subject,
                remedy=f"Set {reference.env} in the environment of this process.",
            )
    else:
        place = f"file {reference.file}"
        text = _file(reference, subject, name)
    text = text.rstrip("\r\n")
    if not text:
        raise SecretUnavailableError(
            f"security.{name} is to come from {place}, which is empty",
            subject=subject,
            remedy="Put the secret there; a trailing line end is ignored.",
        )
    return text


def _file(reference: SecretRef, subject: str, name: str) -> str:
    path = Path(reference.file or "")
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        # A decoding error quotes the bytes it choked on, so only its kind may be shown.
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise SecretUnavailableError(
            f"security.{name} is to come from file {path}, which cannot be read: {why}",
            subject=subject,
            remedy="Check that the file is mounted and readable by this process.",
        ) from None
