"""What is refused about clusters, beyond the shape of their fields."""

import re
from collections.abc import Iterator

from replicator.policy.provenance import MARK_PATTERN
from replicator.topology.availability import MECHANISMS_NOT_YET
from replicator.topology.cluster_spec import SecuritySpec
from replicator.topology.draft import Draft
from replicator.topology.problems import Finding, Path

_TLS_FIELDS: tuple[str, ...] = ("ca", "certificate", "key", "keyPassword")
_SASL_FIELDS: tuple[str, ...] = ("mechanism", "username", "password")


def cluster_findings(draft: Draft) -> Iterator[Finding]:
    """Security that does not fit together, and one cluster under two names."""
    for alias, cluster in draft.clusters.items():
        if re.fullmatch(MARK_PATTERN, alias):
            path = ("spec", "clusters", alias)
            message = f"'{alias}' has the form of a mark in hop headers"
            yield Finding(path, message, "choose another alias", at_key=True)
        if cluster.security is not None:
            yield from _security_findings(cluster.security, ("spec", "clusters", alias, "security"))
    yield from _shared_addresses(draft)


def unused_clusters(draft: Draft) -> Iterator[Finding]:
    """Clusters without a link; only worth saying about a file that is right otherwise."""
    used = {alias for link in draft.links for _, alias in link.mentioned}
    for alias in draft.clusters:
        if alias not in used:
            path = ("spec", "clusters", alias)
            yield Finding(path, f"no link uses '{alias}'", "remove it", "warning", at_key=True)


def _security_findings(security: SecuritySpec, path: Path) -> Iterator[Finding]:
    given = security.model_dump(by_alias=True, exclude_none=True)
    sasl, tls = security.protocol.startswith("SASL"), security.protocol.endswith("SSL")
    if sasl:
        for field in _SASL_FIELDS:
            if field not in given:
                yield Finding(path, f"{security.protocol} needs '{field}'", f"add '{field}'")
    groups: tuple[tuple[bool, tuple[str, ...], str], ...] = (
        (sasl, _SASL_FIELDS, "SASL_PLAINTEXT or SASL_SSL"),
        (tls, _TLS_FIELDS, "SSL or SASL_SSL"),
    )
    for allowed, fields, protocols in groups:
        for field in fields:
            if field in given and not allowed:
                wrong = f"'{field}' has no effect with {security.protocol}"
                yield Finding((*path, field), wrong, f"use {protocols}, or remove it")
    for field, needed in (("certificate", "key"), ("key", "certificate"), ("keyPassword", "key")):
        if tls and field in given and needed not in given:
            yield Finding((*path, field), f"'{field}' needs '{needed}'", f"add '{needed}'")
    if security.mechanism in MECHANISMS_NOT_YET:
        wrong = f"'{security.mechanism}' is not available yet"
        yield Finding((*path, "mechanism"), wrong, "use PLAIN or SCRAM-SHA-512")


def _shared_addresses(draft: Draft) -> Iterator[Finding]:
    owners: dict[str, str] = {}
    for alias, cluster in draft.clusters.items():
        for at, address in enumerate(cluster.bootstrap_servers):
            owner = owners.setdefault(address, alias)
            if owner != alias:
                path = ("spec", "clusters", alias, "bootstrapServers", at)
                wrong = f"'{address}' is also an address of '{owner}'"
                yield Finding(path, wrong, "two aliases cannot be one cluster; remove one")
