"""From links to directed flows."""

from dataclasses import replace

from replicator.identifiers import ClusterAlias, LinkName
from replicator.policy.copies.naming import carries_source
from replicator.policy.copies.overlap import find_overlap
from replicator.policy.copies.routes import leads_to
from replicator.policy.values import NamingKind
from replicator.topology.compiler.draft import DraftLink
from replicator.topology.compiler.policies import link_policy
from replicator.topology.compiler.procedures import link_procedure
from replicator.topology.plan import FlowPlan, LinkPlan
from replicator.topology.spec.document import ActiveActive, ActivePassive, HubAndSpoke


def expand_link(link: DraftLink) -> LinkPlan:
    """The flows of a link, whose aliases exist and are distinct."""
    return replace(_expanded(link), procedure=link_procedure(link.policy))


def _expanded(link: DraftLink) -> LinkPlan:
    spec = link.spec
    if isinstance(spec, ActivePassive):
        return _active_passive(link, spec)
    if isinstance(spec, ActiveActive):
        return _active_active(link, spec)
    return _hub_and_spoke(link, spec)


def settle_topic_configs(
    links: tuple[LinkPlan, ...], order: tuple[str, ...]
) -> tuple[LinkPlan, ...]:
    """Lets topic settings go one way only where two topics would follow each other.

    In a cycle of flows under the same topic name, settings copied all the way round would undo every
    change. There the cluster that comes first leads: hubs first, then the order in the file. All
    other flows of the cycle leave the settings alone. Records go every way as before.
    """
    hubs = {link.hub for link in links}
    rank = {alias: (alias not in hubs, place) for place, alias in enumerate(order)}
    flows = tuple(flow for link in links for flow in link.flows)
    return tuple(
        replace(
            link,
            flows=tuple(
                _without_configs(flow)
                if rank[flow.source] > rank[flow.target] and _comes_back(flow, flows)
                else flow
                for flow in link.flows
            ),
        )
        for link in links
    )


def reserve_heartbeats(links: tuple[LinkPlan, ...]) -> tuple[LinkPlan, ...]:
    """Where any link writes MirrorMaker 2's heartbeats, no link takes them for users' topics.

    They are on clusters that other links read as well, and in copies they would look like heartbeats
    of a flow that sends none.
    """
    if not any(flow.policy.mm2_compatibility for link in links for flow in link.flows):
        return links
    return tuple(
        replace(
            link,
            flows=tuple(
                replace(flow, policy=replace(flow.policy, heartbeats_reserved=True))
                for flow in link.flows
            ),
        )
        for link in links
    )


def with_way_back(links: tuple[LinkPlan, ...]) -> tuple[LinkPlan, ...]:
    """Gives active-passive links under one name their other direction, at rest.

    Under names that carry the source the other direction would copy other topics: such a link
    cannot turn around.
    """
    return tuple(
        replace(link, standby=tuple(_turned(flow) for flow in link.flows))
        if link.active is not None and all(_turns(flow) for flow in link.flows)
        else link
        for link in links
    )


def _turns(flow: FlowPlan) -> bool:
    return flow.policy.naming.kind == "identity"


def _turned(flow: FlowPlan) -> FlowPlan:
    return replace(flow, source=flow.target, target=flow.source, blocked=(flow.source,))


def _comes_back(flow: FlowPlan, flows: tuple[FlowPlan, ...]) -> bool:
    """True when flows that may carry the same topic names lead from the target to the source."""
    if carries_source(flow.policy.naming):
        return False
    onward = (
        (other.source, other.target)
        for other in flows
        if other.policy.naming == flow.policy.naming
        and find_overlap(flow.policy.topics, other.policy.topics) is not None
    )
    return leads_to(onward, flow.target, flow.source)


def _without_configs(flow: FlowPlan) -> FlowPlan:
    policy = flow.policy
    return replace(
        flow, policy=replace(policy, sync_topics=replace(policy.sync_topics, configs=False))
    )


def _active_passive(link: DraftLink, spec: ActivePassive) -> LinkPlan:
    active, passive = ClusterAlias(spec.active), ClusterAlias(spec.passive)
    flow = _flow(link, active, passive, "identity")
    return LinkPlan(LinkName(spec.name), spec.shape, (active, passive), active, None, (flow,))


def _active_active(link: DraftLink, spec: ActiveActive) -> LinkPlan:
    # Every member has a flow of its own to every other: a record that came from one member must not
    # be passed on to a third, or it would arrive there twice.
    clusters = tuple(ClusterAlias(alias) for alias in spec.clusters)
    flows = tuple(
        _flow(link, source, target, "prefix", kept_apart=clusters)
        for source in clusters
        for target in clusters
        if source != target
    )
    return LinkPlan(LinkName(spec.name), spec.shape, clusters, None, None, flows)


def _hub_and_spoke(link: DraftLink, spec: HubAndSpoke) -> LinkPlan:
    hub = ClusterAlias(spec.hub)
    spokes = tuple(ClusterAlias(alias) for alias in spec.spokes)
    gathered: tuple[FlowPlan, ...] = ()
    handed_out: tuple[FlowPlan, ...] = ()
    if spec.direction in {"to-hub", "both"}:
        gathered = tuple(_flow(link, spoke, hub, "prefix") for spoke in spokes)
    if spec.direction in {"from-hub", "both"}:
        relays = spec.direction == "from-hub" or link.policy.relay is True
        handed_out = tuple(
            _flow(link, hub, spoke, "identity", kept_apart=() if relays else spokes)
            for spoke in spokes
        )
    return LinkPlan(
        LinkName(spec.name), spec.shape, (hub, *spokes), None, hub, gathered + handed_out
    )


def _flow(
    link: DraftLink,
    source: ClusterAlias,
    target: ClusterAlias,
    naming: NamingKind,
    *,
    kept_apart: tuple[ClusterAlias, ...] = (),
) -> FlowPlan:
    others = tuple(alias for alias in kept_apart if alias not in {source, target})
    policy = link_policy(link.policy, default_naming=naming)
    return FlowPlan(LinkName(link.spec.name), source, target, policy, (target, *others))
