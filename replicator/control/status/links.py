"""The links of ``status -o json``: role, open transition, fences, what returned. Pure."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from replicator.control.roles.link_facts import LinkFacts, link_facts
from replicator.control.status.facts import PairFacts
from replicator.control.store.state import ControlState
from replicator.identifiers import JsonObject
from replicator.problem import problem_json
from replicator.topology.plan import LinkPlan
from replicator.topology.roles import Role, first_role


def link_report(
    link: LinkPlan,
    role: Role | None,
    pairs: Iterable[PairFacts],
    states: Mapping[str, ControlState],
) -> JsonObject:
    """The object of one link; ``states`` are control topics by cluster."""
    role = role or first_role(link)
    facts = link_facts([states[a] for a in link.clusters if a in states], link, role)
    return {
        "link": link.name,
        "shape": link.shape,
        "clusters": list(link.clusters),
        "active": role.active if link.active is not None else None,
        "epoch": role.epoch,
        "state": role.state,
        "since": moment(role.since_ms) if role.since_ms else None,
        "by": role.by,
        "reason": role.reason,
        "drained": sorted({alias for one in pairs for alias in one.control.drained(link.name)}),
        "transition": _transition(facts),
        "fences": [
            {
                "cluster": one.cluster, "method": one.method, "by": one.by,
                "since": moment(one.at_ms), "transition": one.transition,
            }
            for one in facts.fences
        ],
        "returned": _returned(facts),
        "problems": [problem_json(one) for one in facts.problems],
    }  # fmt: skip


def _transition(facts: LinkFacts) -> JsonObject | None:
    """The role change that holds the link."""
    one = facts.transition
    if one is None:
        return None
    return {"id": one.id, "kind": one.kind, "by": one.by, "since": moment(one.at_ms)}


def _returned(facts: LinkFacts) -> JsonObject | None:
    """What was found on the cluster that came back after the failover in force."""
    one = facts.returned
    if one is None:
        return None
    return {
        "cluster": one.cluster, "since": moment(one.at_ms), "tailRecords": one.tail,
        "fence": one.fence,
    }  # fmt: skip


def moment(at_ms: int) -> str:
    """A time in milliseconds as JSON has it."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat().replace("+00:00", "Z")
