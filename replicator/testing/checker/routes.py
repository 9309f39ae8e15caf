"""Where the topology sends a record; pure.

Kept apart from the product's own naming and provenance on purpose: a judge that asks the accused
finds nothing.
"""

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from replicator.testing.checker.history import Flow

_TOPIC_MARK = re.compile(r"at--[0-9a-f]{8}")
"""Follows the last hop under ``provenance: path``: a check sum of the topic it was written to."""

Naming = Callable[[str, str, str], str | None]
"""Takes source alias, topic there, target alias; returns the topic on the target, or ``None`` if
the topic is not copied."""


class Hop(NamedTuple):
    """One station of a record; only the alias is known under ``provenance: path``."""

    alias: str
    topic: str | None
    partition: int | None
    offset: int | None


def identity(_source: str, topic: str, _target: str) -> str | None:
    """Topics keep their names."""
    return topic


def prefix(source: str, topic: str, _target: str) -> str | None:
    """``orders`` of ``east`` is ``east.orders``."""
    return f"{source}.{topic}"


def parse_hops(text: str) -> tuple[Hop, ...] | None:
    """Reads a hop header, oldest first; ``None`` if it is not well formed."""
    hops = []
    parts = text.split(" ") if text else []
    if len(parts) > 1 and _TOPIC_MARK.fullmatch(parts[-1]):
        parts.pop()
    for part in parts:
        fields = part.split("/")
        if len(fields) == 4 and fields[2].isdigit() and fields[3].isdigit():
            hops.append(Hop(fields[0], fields[1], int(fields[2]), int(fields[3])))
        elif len(fields) == 1 and part:
            hops.append(Hop(part, None, None, None))
        else:
            return None
    return tuple(hops)


class Routes:
    """Answers where records of a topic belong; remembers answers."""

    def __init__(self, flows: Iterable[Flow], naming: Naming) -> None:
        self._flows = tuple(flows)
        self._naming = naming
        self._known: dict[tuple[str, str], frozenset[tuple[str, str]]] = {}

    def destinations(self, cluster: str, topic: str) -> frozenset[tuple[str, str]]:
        """Every (cluster, topic) a record written to this topic of this cluster must reach.

        Direct flows always carry it; flows out of a target do if they relay, and never to a
        cluster the record has been on.
        """
        place = (cluster, topic)
        if place not in self._known:
            found: set[tuple[str, str]] = set()
            self._walk(place, (cluster,), found)
            self._known[place] = frozenset(found)
        return self._known[place]

    def _walk(
        self, place: tuple[str, str], path: tuple[str, ...], found: set[tuple[str, str]]
    ) -> None:
        cluster, topic = place
        for flow in self._flows:
            if flow.source != cluster or flow.target in path or not (len(path) == 1 or flow.relay):
                continue
            name = self._naming(cluster, topic, flow.target)
            if name is not None and (flow.target, name) not in found:
                found.add((flow.target, name))
                self._walk((flow.target, name), (*path, flow.target), found)
