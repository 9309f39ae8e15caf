"""Topology files and plans for tests, built in one place."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol

import yaml

from replicator.topology.file.load import load_text
from replicator.topology.plan import Plan

Link = str | Mapping[str, Any]
"""A link as a mapping, or as the text between the braces of YAML."""


class Listed(Protocol):
    """A cluster that can say how it is entered in a topology; ``LocalCluster`` is one."""

    name: str

    def topology_entry(self) -> dict[str, object]: ...


Clusters = Mapping[str, object] | Iterable[Listed | str]
"""Entries by alias; or clusters that know theirs; or aliases, for plans that contact none."""


def active_passive(topics: Iterable[str], **fields: Any) -> dict[str, Any]:
    """A link from east to west, unless the fields say otherwise."""
    return {
        "name": "dr", "shape": "active-passive", "active": "east", "passive": "west",
        "topics": {"include": list(topics)}, **fields,
    }  # fmt: skip


def topology_text(name: str, clusters: Clusters, links: Iterable[Link], **spec: Any) -> str:
    """A topology file; JSON is YAML. ``spec`` holds further fields, such as ``defaults``."""
    entries = dict(clusters) if isinstance(clusters, Mapping) else dict(map(_entry, clusters))
    mappings = [
        yaml.safe_load(f"{{{link}}}") if isinstance(link, str) else dict(link) for link in links
    ]
    return json.dumps(
        {
            "apiVersion": "replicator/v1", "kind": "Topology", "metadata": {"name": name},
            "spec": {"clusters": entries, "links": mappings, **spec},
        }
    )  # fmt: skip


def write_topology(
    path: Path, name: str, clusters: Clusters, links: Iterable[Link], **spec: Any
) -> Path:
    """Writes a topology file and returns its path."""
    path.write_text(topology_text(name, clusters, links, **spec))
    return path


def plan_of(*links: Link, clusters: Clusters = ("east", "west"), name: str = "shop") -> Plan:
    """The plan of links that must be right."""
    loaded = load_text(topology_text(name, clusters, links))
    assert loaded.plan is not None, [str(problem) for problem in loaded.problems]
    return loaded.plan


def _entry(cluster: Listed | str) -> tuple[str, object]:
    if isinstance(cluster, str):
        return cluster, {"bootstrapServers": [f"{cluster}:9092"]}
    return cluster.name, cluster.topology_entry()
