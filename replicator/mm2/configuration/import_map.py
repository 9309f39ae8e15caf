"""A MirrorMaker 2 properties file as a topology, with a verdict on every one of its keys. Pure.

Total: whatever the file holds, every key gets exactly one verdict; what keeps a topology from being
made becomes a problem.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from replicator.mm2.configuration.import_cluster import ClusterImport
from replicator.mm2.configuration.import_flow import FlowImport, import_flow
from replicator.mm2.configuration.import_links import make_links
from replicator.mm2.configuration.leftovers import decide_leftovers
from replicator.mm2.properties.java_properties import Entry
from replicator.mm2.properties.scopes import Settings
from replicator.mm2.properties.security_values import PLACEHOLDER
from replicator.mm2.properties.verdicts import MappingVerdict, VerdictSheet
from replicator.policy.copies.provenance import MAX_ALIAS_LENGTH
from replicator.policy.values import Naming

DEFAULT_NAME = "mm2"


@dataclass(frozen=True, slots=True)
class MirroredFlow:
    """A flow that MirrorMaker 2 copies, and where it keeps how far it came.

    Attributes:
        source_name: MirrorMaker 2's alias of the source; it stands in stored progress.
        source: the alias of the source in the topology.
        target: the alias of the target in the topology.
        offsets_topic: topic on the target with the progress.
        group: the workers' group on the target.
        naming: how copies are called; aliases in it are those of the topology.
    """

    source_name: str
    source: str
    target: str
    offsets_topic: str
    group: str
    naming: Naming


@dataclass(frozen=True, slots=True)
class Imported:
    """What became of a properties file; ``document`` is None when a problem keeps it from being made."""

    document: dict[str, Any] | None
    verdicts: tuple[MappingVerdict, ...]
    flows: tuple[MirroredFlow, ...] = ()
    problems: tuple[str, ...] = ()


def import_properties(entries: Sequence[Entry], *, name: str = DEFAULT_NAME) -> Imported:
    """Maps a whole file.

    Args:
        entries: of the file, in its order.
        name: what the topology is to be called; other characters than small letters, digits and
            dashes are replaced.
    """
    settings = Settings(entries)
    sheet = VerdictSheet(settings.entries)
    for entry, later in settings.overridden():
        sheet.needless(entry, f"line {later.line} says it again, and the last one counts")
    aliases = _aliases(settings.clusters)
    switched_on = tuple(pair for pair in settings.pairs() if settings.enabled(*pair))
    flows = [
        import_flow(settings, (a, aliases[a]), (b, aliases[b]), tuple(aliases.values()))
        for a, b in switched_on
    ]
    copying = tuple(flow for flow in flows if flow.copies)
    problems = _problems(settings, switched_on, copying)
    document = None if problems else _document(settings, copying, aliases, name, sheet)
    for flow in flows:
        if problems or not flow.copies:
            _forget_places(flow, sheet)
    decide_leftovers(settings, sheet, copying)
    for entry in settings.entries:
        if PLACEHOLDER in entry.value and sheet.is_mapped(entry):
            sheet.needless(entry, "a configuration provider fills it in: check what stands there")
    return Imported(
        document=document,
        verdicts=sheet.verdicts(),
        flows=tuple(_mirrored(settings, flow) for flow in copying),
        problems=problems,
    )


def _document(
    settings: Settings,
    flows: tuple[FlowImport, ...],
    aliases: dict[str, str],
    name: str,
    sheet: VerdictSheet,
) -> dict[str, Any]:
    used = {end[0] for flow in flows for end in (flow.source, flow.target)}
    clusters = {
        aliases[each]: ClusterImport(settings, each, aliases[each], sheet).spec()
        for each in settings.clusters
        if each in used
    }
    listed = settings.everywhere("clusters")
    if listed is not None:
        renamed = [f"'{old}' is '{new}' here" for old, new in aliases.items() if old != new]
        sheet.mapped(listed, "spec.clusters", ", ".join(renamed))
    links = make_links(flows)
    for at, (_, members) in enumerate(links):
        for flow in members:
            _report(flow, f"spec.links[{at}]", sheet)
    return {
        "apiVersion": "replicator/v1",
        "kind": "Topology",
        "metadata": {"name": _legal(name) or DEFAULT_NAME},
        "spec": {"clusters": clusters, "links": [link for link, _ in links]},
    }


def _report(flow: FlowImport, link: str, sheet: VerdictSheet) -> None:
    for entry, outcome, text in flow.findings:
        place = f"{link}.{text}" if text else link
        sheet.add(entry, outcome, place if outcome == "mapped" else text)
    for entry, note in flow.notes:
        sheet.add(entry, "not needed", note)


def _forget_places(flow: FlowImport, sheet: VerdictSheet) -> None:
    """A flow that makes no link: only what is wrong with its keys is worth saying."""
    for entry, outcome, text in flow.findings:
        if outcome != "mapped":
            sheet.add(entry, outcome, text)


def _problems(
    settings: Settings,
    switched_on: tuple[tuple[str, str], ...],
    copying: tuple[FlowImport, ...],
) -> tuple[str, ...]:
    if not settings.clusters:
        return ("there is no 'clusters': this is no file of a MirrorMaker 2 driver",)
    if not switched_on:
        return (
            "no flow is switched on: there is no 'A->B.enabled = true' for two of its clusters",
        )
    if not copying:
        return ("none of the flows that are switched on has a topic that could be copied",)
    used = {end[0] for flow in copying for end in (flow.source, flow.target)}
    return tuple(
        f"cluster '{each}' has no '{each}.bootstrap.servers'"
        for each in settings.clusters
        if each in used and settings.of_cluster(each, "bootstrap.servers") is None
    )


def _aliases(clusters: Sequence[str]) -> dict[str, str]:
    """MirrorMaker 2's aliases and those here, all different."""
    found: dict[str, str] = {}
    for cluster in clusters:
        alias = base = _legal(cluster) or "cluster"
        number = 1
        while alias in found.values():
            number += 1
            alias = f"{base[: MAX_ALIAS_LENGTH - 4]}-{number}"
        found[cluster] = alias
    return found


def _legal(text: str) -> str:
    """Small letters, digits and dashes between them."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower())[:MAX_ALIAS_LENGTH].strip("-")


def _mirrored(settings: Settings, flow: FlowImport) -> MirroredFlow:
    source, target = flow.source[0], flow.target[0]
    own = settings.of_flow(source, target, "offsets.storage.topic")
    topic = (
        own
        or settings.everywhere("offset.storage.topic")
        or settings.of_cluster(target, "offset.storage.topic")
    )
    group = settings.of_cluster(target, "group.id")
    return MirroredFlow(
        source_name=source,
        source=flow.source[1],
        target=flow.target[1],
        offsets_topic=topic.value.strip() if topic else f"mm2-offsets.{source}.internal",
        group=group.value.strip() if group else f"{source}-mm2",
        naming=flow.naming.policy(),
    )
