"""What a link left on its clusters, and which of it may be removed. Pure.

Names on the wire belong to a topology or to an ordered pair of clusters, not to a link, so what another
link of the topology uses stays. Records stay in any case: copies, and what is in quarantine.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from replicator.control.records.base import Record
from replicator.control.records.pair_records import Binding, Layout, Pause
from replicator.control.records.role_records import FenceRecord, SightingRecord
from replicator.control.records.worker_records import WorkerRecord
from replicator.control.store.state import ControlState
from replicator.control.store.worker_record import fresh_workers
from replicator.identifiers import (
    FlowId,
    audit_topic,
    canary_topic,
    checkpoints_topic,
    control_topic,
    flow_id,
    membership_group,
    progress_group,
    quarantine_topic,
)
from replicator.topology.plan import FlowPlan, LinkPlan, Plan

Kind = Literal["fence", "records", "checkpoints", "group", "topic"]
KINDS: tuple[Kind, ...] = ("fence", "records", "checkpoints", "group", "topic")
"""In the order in which they are removed: whatever is left of them, the next run finds it."""


@dataclass(frozen=True, slots=True)
class Leftover:
    """One thing on one cluster: it is removed where ``stays`` is empty, else that says why not."""

    cluster: str
    kind: Kind
    subject: str
    detail: str
    stays: str = ""


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """What was found on one cluster.

    ``control`` is None where there is no control topic. ``topics`` are the reserved ones that exist, with
    the number of records in them; ``groups`` those that exist, with whether anybody is in them.
    """

    control: ControlState | None
    topics: Mapping[str, int] = field(default_factory=dict)
    groups: Mapping[str, bool] = field(default_factory=dict)


def link_pairs(link: LinkPlan) -> tuple[FlowPlan, ...]:
    """The flows of a link in every role that it can have."""
    return (*link.flows, *link.standby)


def at_work(
    plan: Plan, link: LinkPlan, facts: Mapping[str, ClusterFacts], *, now_ms: int
) -> list[str]:
    """Who still serves the link, in words; empty when it may be cleaned up.

    Over a pair that other links use too, workers may go on, but not with lanes of this link.
    """
    found: list[str] = []
    for flow in link_pairs(link):
        pair = flow_id(flow.source, flow.target)
        there = facts.get(flow.target)
        if there is None:
            continue  # lost: nobody can be asked
        shared = pair in pairs_of_others(plan, link)
        workers = fresh_workers(there.control, flow.source, now_ms=now_ms) if there.control else ()
        layout = there.control.layout(flow.source) if there.control else None
        found += [
            f"worker {each.id} on {pair}"
            for each in workers
            if not shared or each.plan_hash == plan.hash or _serves(each, link, layout)
        ]
        group = membership_group(plan.topology, flow.source)
        if not workers and there.groups.get(group):  # who they are is not on record yet
            found.append(f"members of group {group} on {flow.target}")
    return list(dict.fromkeys(found))


def _serves(worker: WorkerRecord, link: LinkPlan, layout: Layout | None) -> bool:
    return any(rates.link == link.name for rates in worker.flows) or any(
        layout is not None and layout.link_of(lane) == link.name for lane in worker.lanes
    )


def open_change(link: LinkPlan, facts: Mapping[str, ClusterFacts]) -> str:
    """The id of a role change of the link that has not ended; empty without one."""
    for each in facts.values():
        for transition in each.control.transitions(link.name) if each.control else ():
            if transition.state == "open":
                return transition.id
    return ""


def leftovers(plan: Plan, link: LinkPlan, facts: Mapping[str, ClusterFacts]) -> list[Leftover]:
    """Everything that the link left, in the order in which it is removed."""
    found = [
        Leftover(
            fence.cluster,
            "fence",
            link.name,
            f"keeps writers off, by {fence.method}",
            ""
            if fence.cluster in facts
            else "the cluster is lost; take the fence down by hand if it returns",
        )
        for _, fence in fences_of(link, facts)
    ]
    found += [
        each
        for alias, there in facts.items()
        for each in (*_records(plan, link, alias, there), *_names(plan, link, alias, there))
    ]
    return sorted(found, key=lambda each: KINDS.index(each.kind))


def obsolete_records(plan: Plan, link: LinkPlan, alias: str, control: ControlState) -> list[Record]:
    """The records of a control topic that only this link needed."""
    others = pairs_of_others(plan, link)
    return [
        record
        for record in control.records().values()
        if not isinstance(record, Binding | SightingRecord) and _is_of(record, link, alias, others)
    ]


def active_on_record(plan: Plan, link: LinkPlan, facts: Mapping[str, ClusterFacts]) -> str:
    """Who is active by the newest role on record; by the file where the link has others; empty without any."""
    controls = {alias: each.control for alias, each in facts.items() if each.control is not None}
    roles = [
        record.role()
        for control in controls.values()
        if (record := control.role(link.name)) is not None
    ]
    if roles:
        return str(max(roles, key=lambda role: role.rank).active)
    known = any(obsolete_records(plan, link, alias, each) for alias, each in controls.items())
    return str(link.active or "") if known else ""


def topics_of(plan: Plan, link: LinkPlan, source: str, control: ControlState) -> frozenset[str]:
    """Source topics on record for this link and for no other one over the same pair."""
    others = {
        each.topic
        for other in plan.links
        if other.name != link.name
        for each in control.topics(source, other.name)
    }
    return frozenset(each.topic for each in control.topics(source, link.name)) - others


def pairs_of_others(plan: Plan, link: LinkPlan) -> frozenset[FlowId]:
    """The ordered pairs that other links of the topology use, in any of their roles."""
    return frozenset(
        flow_id(flow.source, flow.target)
        for other in plan.links
        if other.name != link.name
        for flow in link_pairs(other)
    )


def clusters_of_others(plan: Plan, link: LinkPlan) -> frozenset[str]:
    """The clusters that other links of the topology use."""
    return frozenset(
        str(alias) for other in plan.links if other.name != link.name for alias in other.clusters
    )


def _is_of(record: Record, link: LinkPlan, alias: str, others: frozenset[FlowId]) -> bool:
    named = getattr(record, "link", None)
    if named is not None:
        return bool(named == link.name)
    own = {flow_id(flow.source, flow.target) for flow in link_pairs(link)} - others
    if isinstance(record, Pause):
        return record.flow in own
    source = getattr(record, "source", None)
    return source is not None and f"{source}->{alias}" in own


def fences_of(
    link: LinkPlan, facts: Mapping[str, ClusterFacts]
) -> tuple[tuple[str, FenceRecord], ...]:
    """Every fence of the link with the cluster whose control topic tells of it: not the fenced one."""
    return tuple(
        (holder, fence)
        for holder, there in facts.items()
        if there.control is not None
        for cluster in link.clusters
        if (fence := there.control.fence(link.name, cluster)) is not None
    )


def _records(plan: Plan, link: LinkPlan, alias: str, there: ClusterFacts) -> Iterator[Leftover]:
    if there.control is None or alias not in clusters_of_others(plan, link):
        return  # the whole topic goes
    topic = control_topic(plan.topology)
    obsolete = obsolete_records(plan, link, alias, there.control)
    if obsolete:
        yield Leftover(alias, "records", topic, f"{len(obsolete)} records of the link")
    for flow in link_pairs(link):
        if flow.target != alias or flow_id(flow.source, flow.target) not in pairs_of_others(
            plan, link
        ):
            continue
        if topics_of(plan, link, flow.source, there.control):
            name = checkpoints_topic(plan.topology, flow.source)
            yield Leftover(
                alias, "checkpoints", name, f"positions of topics that only {link.name} copied"
            )
        layout = there.control.layout(flow.source)
        if isinstance(layout, Layout) and layout.block(link.name) is not None:
            why = "lanes of other links over this pair are numbered after it"
            yield Leftover(alias, "records", topic, f"the lanes of {link.name} in the layout", why)


def _names(plan: Plan, link: LinkPlan, alias: str, there: ClusterFacts) -> Iterator[Leftover]:
    seen: set[str] = set()
    for kind, name, detail, stays in _wanted_names(plan, link, alias, there):
        exists = name in (there.groups if kind == "group" else there.topics)
        if exists and name not in seen:
            seen.add(name)
            yield Leftover(alias, kind, name, detail, stays)


def _wanted_names(
    plan: Plan, link: LinkPlan, alias: str, there: ClusterFacts
) -> Iterator[tuple[Kind, str, str, str]]:
    topology = plan.topology
    others = pairs_of_others(plan, link)
    for flow in link_pairs(link):
        pair = flow_id(flow.source, flow.target)
        used = f"another link uses {pair} too" if pair in others else ""
        canary = canary_topic(topology, flow.source, flow.target, link.name)
        if alias in {flow.source, flow.target}:
            yield "topic", canary, "canaries", ""
        if alias == flow.source:
            yield "group", progress_group(topology, flow.target), f"progress of {pair}", used
        if alias == flow.target:
            yield "group", membership_group(topology, flow.source), f"workers of {pair}", used
            name = checkpoints_topic(topology, flow.source)
            yield "topic", name, f"positions and offset index of {pair}", used
            yield "topic", audit_topic(topology, flow.source), f"books of audits of {pair}", used
            name = quarantine_topic(topology, flow.source)
            held = there.topics.get(name, 0)
            kept = f"it holds {held} records that could not be copied" if held else ""
            yield "topic", name, f"quarantine of {pair}", used or kept
    used = "another link uses this cluster too" if alias in clusters_of_others(plan, link) else ""
    # Last: what it says is how another run would know what is left.
    yield (
        "topic",
        control_topic(topology),
        "roles, history of role changes and drills, layout",
        used,
    )
