"""Which engine copies each flow: ``batches`` by name is checked, ``auto`` is decided."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from replicator.policy.copies.engines import (
    AUTOMATIC,
    FlowEngine,
    WayBack,
    automatic_engine,
    obstacles,
)
from replicator.policy.copies.overlap import find_overlap, on_target
from replicator.policy.copies.routes import leads_to
from replicator.policy.values import LinkPolicy
from replicator.topology.compiler.draft import DraftLink
from replicator.topology.compiler.expand import with_way_back
from replicator.topology.compiler.link_rules import COPY_RECORDS
from replicator.topology.plan import FlowPlan, LinkPlan
from replicator.topology.problems import Finding

Links = tuple[tuple[DraftLink, LinkPlan], ...]

_WORST: tuple[WayBack, ...] = ("none", "batches", "records", "longer")


def engine_findings(links: Links) -> Iterator[Finding]:
    """Copies in whole batches carry no header: the producer registry tells them, between two clusters."""
    every = [flow for link in _turnable(links) for flow in (*link.flows, *link.standby)]
    for link, plan in links:
        if not any(flow.policy.engine == "batches" for flow in plan.flows):
            continue
        found = obstacles(
            filters=False, transforms=False, full_provenance=False, by_spark=False,
            comes_back=max((way_back(flow, every) for flow in plan.flows), key=_WORST.index),
        )  # fmt: skip
        for obstacle in found:
            yield Finding(link.where("engine"), obstacle.message, COPY_RECORDS)


def choose_engines(links: Links) -> tuple[LinkPlan, ...]:
    """The links with ``auto`` decided in each flow."""
    turnable = _turnable(links)
    return tuple(
        replace(
            plan,
            flows=tuple(
                replace(flow, policy=_decided(link, flow, turnable)) for flow in plan.flows
            ),
        )
        for link, plan in links
    )


def way_back(flow: FlowPlan, every: Iterable[FlowPlan]) -> WayBack:
    """How records of a flow may come back to its source over ``every`` flow, those that rest too.

    A way back that chooses its engine as this flow does has the same one.
    """
    direct: list[FlowPlan] = []
    others: list[FlowPlan] = []
    for each in every:
        (direct if _opposite(each, flow) else others).append(each)
    if leads_to(((each.source, each.target) for each in others), flow.target, flow.source):
        return "longer"
    if not direct:
        return "none"
    same = {"batches", flow.policy.engine}
    return "batches" if all(each.policy.engine in same for each in direct) else "records"


def _decided(link: DraftLink, flow: FlowPlan, links: tuple[LinkPlan, ...]) -> LinkPolicy:
    policy = flow.policy
    if policy.engine == "auto":
        chosen = _automatic(link, flow, links)
        reason = chosen.reason or AUTOMATIC
        policy = replace(policy, engine=chosen.engine, engine_reason=reason)
    if policy.engine == "batches" and link.policy.provenance is None:
        # Copies in whole batches carry no place, and nothing may look for one.
        policy = replace(policy, provenance="path")
    return policy


def _automatic(link: DraftLink, flow: FlowPlan, links: tuple[LinkPlan, ...]) -> FlowEngine:
    policy = flow.policy
    every = [each for one in links for each in (*one.flows, *one.standby)]
    return automatic_engine(
        obstacles(
            filters=bool(policy.filters),
            transforms=bool(policy.transforms),
            full_provenance=link.policy.provenance == "full",
            by_spark=policy.runtime == "spark",
            comes_back=way_back(flow, every),
        ),
        exactly_once=policy.delivery == "exactly-once",
        both_directions=_met_by_another(flow, links),
    )


def _met_by_another(flow: FlowPlan, links: tuple[LinkPlan, ...]) -> bool:
    """Whether a flow may run beside this one that reads its copies and leads back.

    The other direction of the same active-passive link never does: one rests while the other runs.
    """
    copies = on_target(flow.policy.topics, flow.policy.naming, flow.source)
    return any(
        _opposite(each, flow) and find_overlap(copies, each.policy.topics) is not None
        for link in links
        if link.name != flow.link or link.active is None
        for each in (*link.flows, *link.standby)
    )


def _opposite(one: FlowPlan, other: FlowPlan) -> bool:
    return (one.source, one.target) == (other.target, other.source)


def _turnable(links: Links) -> tuple[LinkPlan, ...]:
    return with_way_back(tuple(plan for _, plan in links))
