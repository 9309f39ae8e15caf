"""Secrets, read at the moment they are needed, never kept in a plan, and registered for redaction.

It stands beside SecretRef, below both rooms that open connections: the client library's and the one
that speaks the protocol itself. A file is read again each time, because Kubernetes rotates mounted
secrets in place.
"""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path

from replicator.errors import SecretUnavailableError
from replicator.identifiers import ClusterAlias
from replicator.redaction import is_secret_setting, register_secret
from replicator.topology.plan import ClusterPlan, Mechanism, Plan, Protocol, SecretRef, SecurityPlan

_PUBLIC = frozenset({"username", "ca", "certificate", "oauth.clientId", "oauth.ca"})
"""What every broker and operator may see; to redact a user's name would garble ACLs and hints."""


@dataclass(frozen=True, slots=True)
class ResolvedSecurity:
    """Everything a client needs to connect, in plain text; secrets stay out of ``repr``.

    ``mechanism`` is SASL's: a login by AWS IAM is OAUTHBEARER to the broker. ``ca``, ``certificate`` and
    ``key`` are PEM text.
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
        mechanism="OAUTHBEARER" if plan.uses_tokens else plan.mechanism,
        username=read("username", plan.username),
        password=read("password", plan.password),
        ca=read("ca", plan.ca),
        certificate=read("certificate", plan.certificate),
        key=read("key", plan.key),
        key_password=read("keyPassword", plan.key_password),
    )


def read_secret(reference: SecretRef, alias: ClusterAlias, name: str) -> str:
    """Reads one secret and registers it for redaction; line ends at its end do not belong to it.

    Raises:
        SecretUnavailableError: it is missing, unreadable or empty.
    """
    text = _read(reference, alias, name)
    if name not in _PUBLIC:
        register_secret(text)
    return text


def register_secrets(plan: Plan) -> None:
    """Has every secret of the plan that can be read now redacted by this process.

    A process shows texts of others, which name secrets that it has no use for itself. What cannot be
    read is an error only where it is needed.
    """
    for cluster in plan.clusters:
        for name, reference in references(cluster.security):
            # A pipe gives its content to one reader only: to the client that needs it.
            if reference.file is None or Path(reference.file).is_file():
                with contextlib.suppress(SecretUnavailableError):
                    read_secret(reference, cluster.alias, name)
        for name, value in cluster.kafka:
            if is_secret_setting(name):
                register_secret(value)


def references(security: SecurityPlan) -> Iterator[tuple[str, SecretRef]]:
    """Every reference of a cluster's security, with the name of its field."""
    for prefix, part in (("", security), ("oauth.", security.oauth)):
        if part is None:
            continue
        for each in fields(part):
            value = getattr(part, each.name)
            if isinstance(value, SecretRef):
                yield f"{prefix}{_in_file(each.name)}", value


def _in_file(name: str) -> str:
    """A field's name as the topology file has it."""
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))


def _read(reference: SecretRef, alias: ClusterAlias, name: str) -> str:
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
