"""What must happen to running workers when one plan replaces another. Pure.

Everything is said about pairs and about flows, a flow being known by its link and its pair. The
answer is the least that is enough: a throttle changes in place, another selection of topics is
published by the controller, and only what a lane holds fixed while it runs restarts lanes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Literal

from replicator.identifiers import ClusterAlias, FlowId, LinkName
from replicator.policy.values import LinkPolicy
from replicator.topology.plan import FlowPlan, PairPlan, Plan

ChangeKind = Literal["restart", "lanes", "selection", "live"]
"""`restart`: its lanes start anew. `lanes`: the fenced change of their number. `selection`: topics
come or go. `live`: taken up in place."""

FlowKey = tuple[LinkName, FlowId]

KINDS: Mapping[str, ChangeKind] = {
    "topics": "selection",
    "groups": "live",
    "naming": "restart",
    "start_from": "restart",
    "delivery": "restart",
    "engine": "restart",
    "commit_interval_seconds": "restart",
    "lanes": "lanes",
    "provenance": "restart",
    "throttle": "live",
    "priority": "live",
    "topic_priorities": "live",
    "sync_topics": "live",
    "sync_acls": "live",
    "sync_groups": "live",
    "discovery_interval_seconds": "live",
    "on_record_error": "live",
    "on_truncation": "live",
    "filters": "restart",
    "transforms": "restart",
    "bulk_sync": "live",
    "runtime": "restart",
    "relay": "live",  # what it does to a flow is in `blocked`
    "mm2_compatibility": "live",
    "heartbeats_reserved": "selection",
}
"""What a change of each policy field asks for; a test keeps it complete."""


@dataclass(frozen=True, slots=True)
class FlowChange:
    """One flow that changed: what that asks for, and the fields that did."""

    link: LinkName
    flow: FlowId
    kinds: frozenset[ChangeKind]
    fields: tuple[str, ...]

    @property
    def restarts(self) -> bool:
        """True when its lanes must start anew."""
        return "restart" in self.kinds

    @property
    def reason(self) -> str:
        """One line for log, API and CLI."""
        return f"{', '.join(self.fields)} changed"


@dataclass(frozen=True, slots=True)
class PlanChanges:
    """The difference between two plans.

    `reconnected_clusters` connect differently now; `restarted_pairs` are the pairs that use them
    and were there before, which start anew with all their flows.
    """

    pairs_added: tuple[FlowId, ...] = ()
    pairs_removed: tuple[FlowId, ...] = ()
    reconnected_clusters: tuple[ClusterAlias, ...] = ()
    restarted_pairs: tuple[FlowId, ...] = ()
    flows_added: tuple[FlowKey, ...] = ()
    flows_removed: tuple[FlowKey, ...] = ()
    flows_changed: tuple[FlowChange, ...] = ()
    renamed: bool = False
    """Another topology name means other control topics: everything starts over."""

    def __bool__(self) -> bool:
        return self != PlanChanges()


def changes(old: Plan, new: Plan) -> PlanChanges:
    """What to do so that workers of the old plan follow the new one."""
    old_pairs, new_pairs = _pairs(old), _pairs(new)
    old_flows, new_flows = _flows(old), _flows(new)
    reconnected = tuple(
        cluster.alias
        for cluster in new.clusters
        if any(was.alias == cluster.alias and was != cluster for was in old.clusters)
    )
    return PlanChanges(
        pairs_added=tuple(id_ for id_ in new_pairs if id_ not in old_pairs),
        pairs_removed=tuple(id_ for id_ in old_pairs if id_ not in new_pairs),
        reconnected_clusters=reconnected,
        restarted_pairs=tuple(
            id_
            for id_, pair in new_pairs.items()
            if id_ in old_pairs
            and (pair.source.alias in reconnected or pair.target.alias in reconnected)
        ),
        flows_added=tuple(key for key in new_flows if key not in old_flows),
        flows_removed=tuple(key for key in old_flows if key not in new_flows),
        flows_changed=tuple(
            change
            for key, flow in new_flows.items()
            if key in old_flows and (change := _flow_change(old_flows[key], flow)) is not None
        ),
        renamed=old.topology != new.topology,
    )


def _flow_change(old: FlowPlan, new: FlowPlan) -> FlowChange | None:
    changed = [
        field.name
        for field in fields(LinkPolicy)
        if getattr(old.policy, field.name) != getattr(new.policy, field.name)
    ]
    kinds: set[ChangeKind] = {KINDS[name] for name in changed}
    if old.blocked != new.blocked:
        changed.append("blocked")
        kinds.add("restart")
    if not changed:
        return None
    return FlowChange(new.link, new.id, frozenset(kinds), tuple(changed))


def _pairs(plan: Plan) -> dict[FlowId, PairPlan]:
    return {pair.id: pair for pair in plan.pairs}


def _flows(plan: Plan) -> dict[FlowKey, FlowPlan]:
    return {(flow.link, flow.id): flow for flow in plan.flows}
