"""What is refused about each link by itself, and names that stand twice."""

import difflib
from collections.abc import Iterator

from replicator.policy.copies.engines import obstacles
from replicator.policy.copies.selection import (
    is_heartbeats_topic,
    is_internal_topic,
    is_literal,
    matcher,
    pattern_matches,
)
from replicator.policy.values import Selection
from replicator.topology.compiler.draft import Draft, DraftLink
from replicator.topology.problems import Finding
from replicator.topology.spec.document import ActivePassive, HubAndSpoke

COPY_RECORDS = "use engine: auto or records"


def link_findings(draft: Draft) -> Iterator[Finding]:
    """Every rule that looks at one link at a time."""
    names: dict[str, int] = {}
    for link in draft.links:
        first = names.setdefault(link.spec.name, link.index)
        if first != link.index:
            wrong = f"'{link.spec.name}' is also the name of spec.links[{first}]"
            yield Finding((*link.path, "name"), wrong, "give each link its own name")
        yield from _alias_findings(link, draft)
        yield from _witness_findings(link, draft)
        if link.partial:
            continue  # what the rules below would miss may stand in the part that is broken
        yield from _topic_findings(link, draft)
        yield from _policy_findings(link)
        yield from _warnings(link)


def _alias_findings(link: DraftLink, draft: Draft) -> Iterator[Finding]:
    seen: set[str] = set()
    for field, alias in link.mentioned:
        path = (*link.path, *field)
        if alias not in draft.aliases:
            close = difflib.get_close_matches(alias, draft.aliases, n=1)
            remedy = f"did you mean '{close[0]}'?" if close else "declare it under spec.clusters"
            yield Finding(path, f"'{alias}' is not a cluster of this topology", remedy)
        elif alias in seen:
            yield Finding(path, f"'{alias}' has two roles in this link", "name another cluster")
        seen.add(alias)


def _witness_findings(link: DraftLink, draft: Draft) -> Iterator[Finding]:
    """A witness must be another cluster or program, on a link that has something to witness."""
    failover = link.policy.failover
    automatic = failover.automatic if failover is not None else None
    if automatic is None:
        return
    if not isinstance(link.spec, ActivePassive):
        path = link.where("failover", "automatic")
        yield Finding(path, "this shape has no active side to replace", "remove it")
        return
    alias, path = automatic.witness.cluster, link.where("failover", "automatic", "witness")
    if alias is not None and alias not in draft.aliases:
        yield Finding(
            (*path, "cluster"), f"'{alias}' is not a cluster of this topology",
            "declare it under spec.clusters",
        )  # fmt: skip
    elif alias in {link.spec.active, link.spec.passive}:
        yield Finding(
            (*path, "cluster"), f"'{alias}' is a side of this link and cannot witness it",
            "name a third cluster, or use http",
        )  # fmt: skip


def _topic_findings(link: DraftLink, draft: Draft) -> Iterator[Finding]:
    topics = link.policy.topics
    if topics is None or topics.include is None:
        remedy = "add 'topics: {include: [...]}' here or under spec.defaults"
        yield Finding(link.path, "no topics are included", remedy)
        return
    where = link.where("topics", "include")
    takes = matcher(Selection(tuple(topics.include), tuple(topics.exclude or ())))
    mm2 = any(each.policy.mm2_compatibility for each in draft.links)
    for at, pattern in enumerate(topics.include):
        if not is_literal(pattern):
            continue
        owner = next((alias for alias in draft.aliases if pattern.startswith(f"{alias}.")), None)
        if owner is not None:
            wrong = f"'{pattern}' looks like a copy of '{owner}': its name begins with that alias"
            yield Finding((*where, at), wrong, "rename the cluster or the topic, or use a glob")
        if is_internal_topic(pattern):
            wrong = f"'{pattern}' is an internal topic, which is never replicated"
            yield Finding((*where, at), wrong, "remove it")
        elif mm2 and is_heartbeats_topic(pattern, draft.aliases):
            wrong = f"'{pattern}' is MirrorMaker 2's own topic where mm2Compatibility is on"
            yield Finding((*where, at), wrong, "remove it, or rename the topic")
        elif not takes(pattern):
            wrong = f"'{pattern}' is included and excluded; exclude wins"
            yield Finding((*where, at), wrong, "remove one of the two", "warning")
    for pattern in topics.priorities or {}:
        if is_literal(pattern) and not takes(pattern):
            path = (*link.where("topics", "priorities"), pattern)
            yield Finding(
                path, f"'{pattern}' is not one of the link's topics", "remove it", "warning"
            )


def _policy_findings(link: DraftLink) -> Iterator[Finding]:
    policy = link.policy
    if policy.engine == "batches":
        for obstacle in obstacles(
            filters=bool(policy.filters),
            transforms=bool(policy.transforms),
            full_provenance=policy.provenance == "full",
            by_spark=policy.runtime == "spark",
            comes_back="none",  # a rule about flows, see flow_rules.py
        ):
            yield Finding(link.where(*obstacle.field), obstacle.message, COPY_RECORDS)
    records = policy.throttle.records_per_second if policy.throttle is not None else None
    if records is not None and policy.lanes and records < policy.lanes:
        wrong = f"{records} records per second are too few for {policy.lanes} lanes"
        path = link.where("throttle", "recordsPerSecond")
        yield Finding(path, wrong, f"give at least {policy.lanes}, or fewer lanes")


def _warnings(link: DraftLink) -> Iterator[Finding]:
    policy, spec = link.policy, link.spec
    sync = policy.sync.topics if policy.sync is not None else None
    if sync is not None and sync.replication_factor == 1:
        path = link.where("sync", "topics", "replicationFactor")
        remedy = "use auto, unless the target has one broker"
        yield Finding(path, "one replica: a lost broker loses the copy", remedy, "warning")
    unlimited = policy.throttle is None or policy.throttle.bytes_per_second is None
    if policy.priority == "bulk" and unlimited:
        remedy = "add 'throttle: {bytesPerSecond: 50MB}' or so"
        yield Finding(link.where("priority"), "bulk without a throttle", remedy, "warning")
    groups = policy.groups.include if policy.groups is not None else None
    if isinstance(spec, ActivePassive) and groups == []:
        remedy = "consumers will start over after a failover; include their groups"
        yield Finding(link.where("groups", "include"), "no group is selected", remedy, "warning")
    if spec.relay and not (isinstance(spec, HubAndSpoke) and spec.direction == "both"):
        remedy = "it is for hub-and-spoke links with direction: both"
        yield Finding((*link.path, "relay"), "'relay' has no effect here", remedy, "warning")
    for pattern, _ in _shadowed(link):
        path = (*link.where("topics", "priorities"), pattern)
        wrong = f"'{pattern}' never counts: an earlier pattern matches it"
        yield Finding(path, wrong, "move it up", "warning")


def _shadowed(link: DraftLink) -> Iterator[tuple[str, str]]:
    topics = link.policy.topics
    patterns = list((topics.priorities if topics is not None else None) or {})
    for at, pattern in enumerate(patterns):
        earlier = next((p for p in patterns[:at] if pattern_matches(p, pattern)), None)
        if is_literal(pattern) and earlier is not None:
            yield pattern, earlier
