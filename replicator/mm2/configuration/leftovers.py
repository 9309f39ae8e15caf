"""Verdicts on keys that the mapping had nothing to say about: one sentence each. Pure."""

import difflib
from collections.abc import Collection, Sequence

from replicator.mm2.configuration.import_cluster import CLIENT_SETTINGS, CLIENTS
from replicator.mm2.configuration.import_flow import FlowImport
from replicator.mm2.properties.scopes import Scoped, Settings
from replicator.mm2.properties.unmapped import NAMES, Outcome, unmapped
from replicator.mm2.properties.verdicts import VerdictSheet

FLOW_KEYS = frozenset({
    "config.properties.blacklist", "config.properties.exclude", "emit.checkpoints.enabled",
    "emit.heartbeats.enabled", "emit.offset-syncs.enabled", "enabled", "groups", "groups.blacklist",
    "groups.exclude", "offset-syncs.topic.location", "refresh.groups.enabled",
    "refresh.topics.enabled", "refresh.topics.interval.seconds", "replication.factor",
    "replication.policy.class", "replication.policy.separator", "sync.group.offsets.enabled",
    "sync.group.offsets.interval.seconds", "sync.topic.acls.enabled", "sync.topic.configs.enabled",
    "tasks.max", "topics", "topics.blacklist", "topics.exclude", "use.defaults.from",
})  # fmt: skip
"""Keys that map to fields of a link, where they are a flow's or everybody's."""

CLUSTER_KEYS = frozenset({
    "bootstrap.servers", "sasl.jaas.config", "sasl.mechanism", "security.protocol",
    "ssl.endpoint.identification.algorithm", "ssl.key.password", "ssl.keystore.certificate.chain",
    "ssl.keystore.key", "ssl.keystore.location", "ssl.truststore.certificates",
    "ssl.truststore.location",
})  # fmt: skip
"""Keys that map to fields of a cluster."""

CONSUMER_KEYS = frozenset({"auto.offset.reset", "isolation.level"})
_ENDS = ("source.cluster.", "target.cluster.")
WORKER_KEYS = frozenset({"exactly.once.source.support"})
OVERRIDES = (
    "producer.override.", "consumer.override.", "admin.override.", "source.consumer.override.",
    "source.consumer.", "source.admin.", "source.producer.", "target.producer.", "target.admin.",
    "target.consumer.", *CLIENTS,
)  # fmt: skip
"""How keys of Java clients are marked, the longest first."""

KNOWN = FLOW_KEYS | CLUSTER_KEYS | CONSUMER_KEYS | WORKER_KEYS | set(CLIENT_SETTINGS) | set(NAMES)


def decide_leftovers(settings: Settings, sheet: VerdictSheet, flows: Sequence[FlowImport]) -> None:
    """Gives every entry without a finding its verdict."""
    copied = {f"{flow.source[0]}->{flow.target[0]}" for flow in flows}
    used = {end[0] for flow in flows for end in (flow.source, flow.target)}
    for entry in sheet.open():
        outcome, reason = _why(settings.scoped(entry), copied, used)
        sheet.add(entry, outcome, reason)


def _why(scoped: Scoped, copied: Collection[str], used: Collection[str]) -> tuple[Outcome, str]:
    if scoped.scope == "stranger":
        return "not needed", f"{scoped.owner} is not a flow between the listed clusters"
    if scoped.scope == "flow" and scoped.owner not in copied:
        return "not needed", f"{scoped.owner} copies nothing"
    if scoped.scope == "cluster" and scoped.owner not in used:
        return "not needed", f"no flow that copies anything uses '{scoped.owner}'"
    base = _base(scoped.name)
    if base != scoped.name or base in CLIENT_SETTINGS or base in CONSUMER_KEYS:
        return _client_key(scoped, base)
    if scoped.scope == "cluster" and base in FLOW_KEYS:
        return "not needed", "MirrorMaker 2 ignores it there: it is a key of a flow"
    if scoped.scope == "flow" and base.startswith(_ENDS) and base not in NAMES:
        return "not supported", "a cluster has one address and one login, for all its flows"
    if scoped.scope == "flow" and base in CLUSTER_KEYS:
        return "not needed", "MirrorMaker 2 ignores it there: it is a key of a cluster"
    return _by_name(base)


def _by_name(base: str) -> tuple[Outcome, str]:
    if base in FLOW_KEYS:
        return "not needed", "every flow that copies anything says it for itself"
    if base == "bootstrap.servers":
        return "not needed", "every cluster says it for itself"
    if base in CLUSTER_KEYS:
        return "not needed", (
            "each cluster in use says it for itself, or has no use for it with its protocol"
        )
    if base in WORKER_KEYS:
        return "not needed", "MirrorMaker 2 ignores it without the alias of a target before it"
    why = unmapped(base)
    if why is not None:
        return why.outcome, why.reason
    if base == "clusters":
        return "not needed", "it lists no cluster that copies anything"
    close = difflib.get_close_matches(base, KNOWN, n=1, cutoff=0.8)
    hint = f"; '{close[0]}' is one that is known" if close else ""
    return "not supported", f"neither MirrorMaker 2 nor a Kafka client is known to have it{hint}"


def _client_key(scoped: Scoped, base: str) -> tuple[Outcome, str]:
    """A key of a Java client that reached no field."""
    if scoped.scope == "all" and base != scoped.name:
        return "not needed", "MirrorMaker 2 ignores it without the alias of a cluster before it"
    if base in CONSUMER_KEYS:
        return "not needed", "it counts for the consumer of a flow's source only"
    if base in CLIENT_SETTINGS and scoped.scope == "flow":
        return "not supported", "such a setting belongs to a cluster: spec.clusters.ALIAS.kafka"
    if base in CLIENT_SETTINGS:
        return "not needed", "MirrorMaker 2 ignores it without the alias of a cluster before it"
    if base in CLUSTER_KEYS and scoped.scope == "flow":
        return "not supported", "a cluster has one address and one login, for all its flows"
    return _by_name(base)


def _base(name: str) -> str:
    """The key without the word that says whose client it is for."""
    prefix = next((each for each in OVERRIDES if name.startswith(each)), "")
    bare = name.removeprefix(prefix)
    return name if name in NAMES or not bare else bare
