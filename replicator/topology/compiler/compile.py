"""From a draft to the plan, or to every reason why there is none. Pure."""

import dataclasses
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass

from replicator.identifiers import ClusterAlias
from replicator.topology.compiler.cluster_rules import cluster_findings, region_of, unused_clusters
from replicator.topology.compiler.draft import Draft
from replicator.topology.compiler.engine_choice import choose_engines
from replicator.topology.compiler.expand import (
    expand_link,
    reserve_heartbeats,
    settle_topic_configs,
    with_way_back,
)
from replicator.topology.compiler.flow_rules import flow_findings
from replicator.topology.compiler.link_rules import link_findings
from replicator.topology.plan import (
    ClusterPlan,
    LinkPlan,
    OAuthPlan,
    Plan,
    SecretRef,
    SecurityPlan,
)
from replicator.topology.problems import Finding
from replicator.topology.spec.cluster_spec import ClusterSpec, LiteralName, OAuthSpec
from replicator.topology.spec.fields import Secret


@dataclass(frozen=True, slots=True)
class Compiled:
    """The plan, None when any finding is an error; findings in no particular order."""

    plan: Plan | None
    findings: tuple[Finding, ...]


def compile_topology(draft: Draft) -> Compiled:
    """Applies every rule and, when nothing is wrong, makes the plan."""
    findings = [*cluster_findings(draft), *link_findings(draft)]
    sound = [link for link in draft.links if not (link.partial or _broken(link.path, findings))]
    links = tuple(expand_link(link) for link in sound)
    drafted = tuple(zip(sound, links, strict=True))
    findings.extend(flow_findings(draft, drafted))
    if any(finding.severity == "error" for finding in findings):
        return Compiled(None, tuple(findings))
    findings.extend(unused_clusters(draft))
    clusters = tuple(_cluster(alias, spec) for alias, spec in draft.clusters.items())
    settled = reserve_heartbeats(settle_topic_configs(choose_engines(drafted), draft.aliases))
    digest = plan_hash(draft.name, clusters, settled)
    return Compiled(Plan(draft.name, clusters, with_way_back(settled), digest), tuple(findings))


def plan_hash(topology: str, clusters: tuple[ClusterPlan, ...], links: tuple[LinkPlan, ...]) -> str:
    """SHA-256 of the plan's canonical JSON: equal plans have equal hashes, whatever the file's form."""
    content = {
        "topology": topology,
        "clusters": [dataclasses.asdict(cluster) for cluster in clusters],
        "links": [dataclasses.asdict(link) for link in links],
    }
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _broken(path: tuple[str | int, ...], findings: list[Finding]) -> bool:
    """True when the link itself cannot be expanded: an alias is unknown or stands twice."""
    aliases = {"active", "passive", "clusters", "hub", "spokes"}
    return any(
        finding.severity == "error"
        and finding.path[: len(path)] == path
        and len(finding.path) > len(path)
        and finding.path[len(path)] in aliases
        for finding in findings
    )


def _cluster(alias: str, spec: ClusterSpec) -> ClusterPlan:
    return ClusterPlan(
        alias=ClusterAlias(alias),
        bootstrap_servers=tuple(spec.bootstrap_servers),
        security=_security(spec),
        kafka=tuple(sorted(spec.kafka.items())),
    )


def _security(spec: ClusterSpec) -> SecurityPlan:
    given = spec.security
    if given is None:
        return SecurityPlan()
    return SecurityPlan(
        protocol=given.protocol,
        mechanism=given.mechanism,
        username=_reference(given.username),
        password=_reference(given.password),
        ca=_reference(given.ca),
        certificate=_reference(given.certificate),
        key=_reference(given.key),
        key_password=_reference(given.key_password),
        oauth=_oauth(given.oauth),
        aws_region=_aws_region(given.aws_region, spec.bootstrap_servers)
        if given.mechanism == "AWS_MSK_IAM"
        else "",
    )


def _oauth(given: OAuthSpec | None) -> OAuthPlan | None:
    if given is None:
        return None
    return OAuthPlan(
        token_url=given.token_url or "",
        client_id=_reference(given.client_id),
        client_secret=_reference(given.client_secret),
        scope=given.scope or "",
        ca=_reference(given.ca),
        token_file=given.token_file or "",
        token_command=tuple(given.token_command or ()),
        extensions=tuple(sorted(given.extensions.items())),
    )


def _aws_region(given: str | None, servers: Sequence[str]) -> str:
    return given or next(filter(None, map(region_of, servers)), "")


def _reference(secret: Secret | None) -> SecretRef | None:
    if secret is None:
        return None
    if isinstance(secret, LiteralName):
        return SecretRef(literal=secret.literal)
    return SecretRef(env=secret.env, file=secret.file)
