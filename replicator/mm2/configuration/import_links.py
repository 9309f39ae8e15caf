"""From flows to links: which flows of a properties file make one link of a topology. Pure.

- Two flows in opposite directions with the same policy are one active-active link. Under identity so
  are all flows of a full mesh, because there a record must not arrive over two ways.
- Flows of several sources that write topics of the same name on one target are one hub-and-spoke
  link, or the topology would be refused.
- Any other flow is an active-passive link, or hub-and-spoke where a flow leads back.
"""

import json
from collections.abc import Sequence
from typing import Any

from replicator.mm2.configuration.import_flow import FlowImport
from replicator.policy.copies.provenance import MAX_ALIAS_LENGTH

Link = tuple[dict[str, Any], tuple[FlowImport, ...]]
"""A link as it stands in the file, and the flows it stands for."""


def make_links(flows: Sequence[FlowImport]) -> tuple[Link, ...]:
    """Every flow in exactly one link, in the order of the flows."""
    left = list(flows)
    links: list[Link] = []
    while left:
        members = _mesh(left[0], left) or _fan_in(left[0], left) or (left[0],)
        left = [flow for flow in left if flow not in members]
        links.append((_link(members, flows), members))
    return _with_names(links)


def _mesh(first: FlowImport, flows: Sequence[FlowImport]) -> tuple[FlowImport, ...]:
    """The flows of the largest set of clusters around ``first`` that all copy to each other."""
    alike = {_ends(flow): flow for flow in flows if _policy(flow) == _policy(first)}
    clusters = [first.source[1], first.target[1]]
    if (clusters[1], clusters[0]) not in alike:
        return ()
    if first.policy["naming"] == "identity":
        for other in dict.fromkeys(alias for ends in alike for alias in ends):
            if other not in clusters and all(
                (one, other) in alike and (other, one) in alike for one in clusters
            ):
                clusters.append(other)
    return tuple(flow for ends, flow in alike.items() if set(ends) <= set(clusters))


def _fan_in(first: FlowImport, flows: Sequence[FlowImport]) -> tuple[FlowImport, ...]:
    if first.policy["naming"] != "identity":
        return ()
    alike = tuple(
        flow for flow in flows if flow.target == first.target and _policy(flow) == _policy(first)
    )
    return alike if len(alike) > 1 else ()


def _link(members: tuple[FlowImport, ...], flows: Sequence[FlowImport]) -> dict[str, Any]:
    first = members[0]
    aliases = list(dict.fromkeys(alias for flow in members for alias in _ends(flow)))
    target = first.target[1]
    if len(members) == 1 and (target, first.source[1]) not in {_ends(flow) for flow in flows}:
        shape: dict[str, Any] = {
            "name": f"{first.source[1]}-to-{target}",
            "shape": "active-passive",
            "active": first.source[1],
            "passive": target,
        }
    elif all(flow.target == first.target for flow in members):
        spokes = [flow.source[1] for flow in members]
        shape = {
            "name": f"{'-'.join(spokes)}-to-{target}",
            "shape": "hub-and-spoke",
            "hub": target,
            "spokes": spokes,
            "direction": "to-hub",
        }
    else:
        shape = {"name": "-".join(aliases), "shape": "active-active", "clusters": aliases}
    return shape | first.policy


def _with_names(links: list[Link]) -> tuple[Link, ...]:
    """Names that are unique and not too long."""
    taken: set[str] = set()
    for at, (link, _) in enumerate(links):
        name = str(link["name"])
        if len(name) > MAX_ALIAS_LENGTH or name in taken:
            name = f"link-{at + 1}"
        taken.add(name)
        link["name"] = name
    return tuple(links)


def _ends(flow: FlowImport) -> tuple[str, str]:
    return flow.source[1], flow.target[1]


def _policy(flow: FlowImport) -> str:
    return json.dumps(flow.policy, sort_keys=True)
