"""What is left of a document that has mistakes, so that the rest of it is judged in the same go.

Broken fields are taken out and what remains is read again. A link that lost a field is partial: its
aliases and its name can still be judged, its topics and policies cannot.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from replicator.topology.compiler.draft import DEFAULTS, Draft, draft_of
from replicator.topology.file.shape import check_shape
from replicator.topology.problems import Finding, Path
from replicator.topology.spec.document import API_VERSION, KIND

_CLUSTERS: Path = ("spec", "clusters")
_LINKS: Path = ("spec", "links")


def salvaged_draft(data: Mapping[str, Any], findings: Iterable[Finding]) -> Draft | None:
    """The draft of what can be read; None when too little can."""
    spec = data.get("spec")
    if not isinstance(spec, Mapping):
        return None
    clusters, links, defaults = spec.get("clusters"), spec.get("links"), spec.get("defaults")
    if not isinstance(clusters, Mapping) or not isinstance(links, list):
        return None
    broken = {finding.path for finding in findings}
    if defaults is not None and not isinstance(defaults, Mapping):
        defaults = {}
    parts: dict[Path, Mapping[str, Any]] = {
        **{(*_CLUSTERS, alias): value for alias, value in clusters.items()},
        **{(*_LINKS, at): value for at, value in enumerate(links)},
    }
    kept = _without_broken(parts, broken)
    left = _without_broken({DEFAULTS: defaults or {}}, broken).get(DEFAULTS, {})
    document, second = check_shape(_whole(kept, left))
    if document is None:
        # Fields that were needed are gone: their clusters and links go too.
        places = [path for path in kept if path[:2] == _LINKS]
        gone = {_place_in_file(finding.path, places) for finding in second}
        kept = {path: value for path, value in kept.items() if path not in gone}
        document, _ = check_shape(_whole(kept, left))
    if document is None:
        return None
    indexes = tuple(int(path[2]) for path in kept if path[:2] == _LINKS)
    lossy = any(path[:2] == DEFAULTS for path in broken)
    partial = [at for at in indexes if lossy or any(p[:3] == (*_LINKS, at) for p in broken)]
    return draft_of(document, indexes=indexes, aliases=tuple(clusters), partial=partial)


def _without_broken(
    parts: Mapping[Path, Mapping[str, Any]], broken: Iterable[Path]
) -> dict[Path, Mapping[str, Any]]:
    kept = dict(parts)
    for path in broken:
        for part in [part for part in kept if path[: len(part)] == part]:
            if len(path) == len(part):
                del kept[part]
            else:
                field = path[len(part)]
                kept[part] = {key: value for key, value in kept[part].items() if key != field}
    return kept


def _whole(kept: Mapping[Path, Mapping[str, Any]], defaults: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": "unnamed"},
        "spec": {
            "clusters": {path[2]: value for path, value in kept.items() if path[:2] == _CLUSTERS},
            "defaults": defaults,
            "links": [value for path, value in kept.items() if path[:2] == _LINKS],
        },
    }


def _place_in_file(path: Path, links: list[Path]) -> Path:
    """The part that a finding about the salvaged document is about, as it stands in the file."""
    if path[:2] == _LINKS and len(path) > 2 and isinstance(path[2], int):
        return links[path[2]]
    return path[:3]
