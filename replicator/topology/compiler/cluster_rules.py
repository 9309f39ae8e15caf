"""What is refused about clusters, beyond the shape of their fields."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from replicator.policy.copies.provenance import MARK_PATTERN
from replicator.topology.compiler.draft import Draft
from replicator.topology.problems import Finding, Path
from replicator.topology.spec.cluster_spec import SecuritySpec

_TLS_FIELDS: tuple[str, ...] = ("ca", "certificate", "key", "keyPassword")
_SASL_FIELDS: tuple[str, ...] = ("mechanism", "username", "password", "oauth", "awsRegion")
_PASSWORD_FIELDS = ("username", "password")
_FIELDS_OF_TOKENS = {"OAUTHBEARER": ("oauth",), "AWS_MSK_IAM": ("awsRegion",)}
_TOKEN_SOURCES = ("tokenUrl", "tokenFile", "tokenCommand")
_FOR_A_URL = ("clientId", "clientSecret", "scope", "ca")
_MSK_NAME = re.compile(
    r"\.(?:kafka|kafka-serverless)\.([a-z]{2}(?:-[a-z]+)+-[0-9]+)\.amazonaws\.com(?:\.cn)?:[0-9]+$"
)


def region_of(server: str) -> str:
    """The AWS region that the name of an MSK broker tells; empty where it tells none."""
    match = _MSK_NAME.search(server.lower())
    return match[1] if match else ""


def cluster_findings(draft: Draft) -> Iterator[Finding]:
    """Security that does not fit together, and one cluster under two names."""
    for alias, cluster in draft.clusters.items():
        if re.fullmatch(MARK_PATTERN, alias):
            path: Path = ("spec", "clusters", alias)
            message = f"'{alias}' has the form of a mark in hop headers"
            yield Finding(path, message, "choose another alias", at_key=True)
        if cluster.security is not None:
            path = ("spec", "clusters", alias, "security")
            yield from _security_findings(cluster.security, cluster.bootstrap_servers, path)
    yield from _shared_addresses(draft)


def unused_clusters(draft: Draft) -> Iterator[Finding]:
    """Clusters without a link; only worth saying about a file that is right otherwise."""
    used = {alias for link in draft.links for _, alias in link.mentioned}
    for alias in draft.clusters:
        if alias not in used:
            path = ("spec", "clusters", alias)
            yield Finding(path, f"no link uses '{alias}'", "remove it", "warning", at_key=True)


def _security_findings(
    security: SecuritySpec, servers: Sequence[str], path: Path
) -> Iterator[Finding]:
    given = security.model_dump(by_alias=True, exclude_none=True)
    sasl, tls = security.protocol.startswith("SASL"), security.protocol.endswith("SSL")
    if sasl:
        yield from _login_findings(security, servers, given, path)
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


def _login_findings(
    security: SecuritySpec, servers: Sequence[str], given: Mapping[str, Any], path: Path
) -> Iterator[Finding]:
    """The fields that go with the mechanism, no others."""
    mechanism = security.mechanism
    if mechanism is None:
        yield Finding(path, f"{security.protocol} needs 'mechanism'", "add 'mechanism'")
    fitting = _FIELDS_OF_TOKENS.get(mechanism or "", _PASSWORD_FIELDS)
    needed: tuple[str, ...] = () if mechanism == "AWS_MSK_IAM" else fitting
    for field in needed:
        if field not in given:
            who = mechanism if field == "oauth" else security.protocol
            yield Finding(path, f"{who} needs '{field}'", f"add '{field}'")
    for field in _SASL_FIELDS[1:]:
        if mechanism is not None and field in given and field not in fitting:
            yield Finding((*path, field), f"'{field}' has no effect with {mechanism}", "remove it")
    if mechanism == "AWS_MSK_IAM" and not (security.aws_region or any(map(region_of, servers))):
        wrong = "no bootstrap server's name tells the AWS region"
        yield Finding(path, wrong, "add 'awsRegion', such as eu-west-1")
    if mechanism == "AWS_MSK_IAM" and security.protocol != "SASL_SSL":
        yield Finding((*path, "protocol"), "MSK takes IAM over TLS only", "use SASL_SSL")
    if security.oauth is not None and mechanism == "OAUTHBEARER":
        yield from _source_findings(given["oauth"], (*path, "oauth"))


def _source_findings(oauth: Mapping[str, Any], path: Path) -> Iterator[Finding]:
    sources = [name for name in _TOKEN_SOURCES if name in oauth]
    if len(sources) != 1:
        wrong = f"{' and '.join(sources)} exclude each other" if sources else "no source of tokens"
        yield Finding(path, wrong, "give exactly one of tokenUrl, tokenFile and tokenCommand")
    for field in _FOR_A_URL:
        if sources == ["tokenUrl"] and field in _FOR_A_URL[:2] and field not in oauth:
            yield Finding(path, f"'tokenUrl' needs '{field}'", f"add '{field}'")
        if "tokenUrl" not in sources and field in oauth:
            wrong = f"'{field}' has no effect without tokenUrl"
            yield Finding((*path, field), wrong, "remove it")


def _shared_addresses(draft: Draft) -> Iterator[Finding]:
    owners: dict[str, str] = {}
    for alias, cluster in draft.clusters.items():
        for at, address in enumerate(cluster.bootstrap_servers):
            owner = owners.setdefault(address, alias)
            if owner != alias:
                path = ("spec", "clusters", alias, "bootstrapServers", at)
                wrong = f"'{address}' is also an address of '{owner}'"
                yield Finding(path, wrong, "two aliases cannot be one cluster; remove one")
