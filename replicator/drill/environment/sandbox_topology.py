"""The topology of a sandbox: the operator's link, on the sandbox's clusters. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from replicator.drill.file.plan import ROLE_KINDS, Drill
from replicator.identifiers import parse_flow_id

SANDBOX_CLUSTERS = ("east", "west")
TOPOLOGY = "drill"
TOPIC = "drill.orders"

# Left out: what reaches outside, what one broker cannot do, and what the sandbox decides itself.
_DROPPED = ("hooks", "fencing", "bulkSync", "runtime", "topics", "groups", "startFrom")
_PLAIN: Mapping[str, Any] = {
    "topics": {"include": [TOPIC]},
    "groups": {"include": ["*"]},
    "discoveryInterval": "1s",
}

Json = dict[str, Any]


def sandbox_clusters(drill: Drill, original: Mapping[str, Any] | None) -> tuple[str, ...]:
    """Aliases of the clusters to boot, source first.

    The link's own aliases where there is a topology, so that the report names clusters as operators do.
    """
    if drill.flow:
        return tuple(map(str, parse_flow_id(drill.flow)))
    link = _link(drill, original)
    if link is None:
        return SANDBOX_CLUSTERS
    return str(link["active"]), str(link["passive"])


def sandbox_topology(
    drill: Drill,
    original: Mapping[str, Any] | None,
    *,
    entries: Mapping[str, Mapping[str, Any]],
) -> Json:
    """The document of a topology file.

    Args:
        drill: what is rehearsed.
        original: the operator's document, already validated; None makes a plain link.
        entries: what stands under each cluster, by alias, source first.
    """
    source, target = list(entries)
    link = _link(drill, original)
    defaults = _kept((original or {}).get("spec", {}).get("defaults") or {})
    wanted: Json = {
        **(_kept(link) if link is not None else _plain_link(drill, source, target)),
        **_PLAIN,
        **_sides(link, source, target),
    }
    if drill.kind in ROLE_KINDS:
        wanted["fencing"] = {"method": "manual"}  # the sandbox stops its own writers
    return {
        "apiVersion": "replicator/v1",
        "kind": "Topology",
        "metadata": {"name": TOPOLOGY},
        "spec": {
            "clusters": {alias: dict(entry) for alias, entry in entries.items()},
            "defaults": defaults,
            "links": [wanted],
        },
    }


def _link(drill: Drill, original: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    links: Sequence[Mapping[str, Any]] = (original or {}).get("spec", {}).get("links", ())
    return next((link for link in links if link["name"] == drill.link), None)


def _kept(policy: Mapping[str, Any]) -> Json:
    kept = {name: value for name, value in policy.items() if name not in _DROPPED}
    sync = kept.get("sync")
    if isinstance(sync, Mapping) and isinstance(sync.get("topics"), Mapping):
        topics = {k: v for k, v in sync["topics"].items() if k != "replicationFactor"}
        kept["sync"] = {**sync, "topics": topics}
    return kept


def _plain_link(drill: Drill, source: str, target: str) -> Json:
    return {"name": drill.link, "shape": "active-passive", "active": source, "passive": target}


def _sides(link: Mapping[str, Any] | None, source: str, target: str) -> Json:
    """The link's clusters, less those that are not of this flow."""
    if link is None or link["shape"] == "active-passive":
        return {}
    if link["shape"] == "active-active":
        return {"clusters": [source, target]}
    return {"spokes": [target if link["hub"] == source else source]}
