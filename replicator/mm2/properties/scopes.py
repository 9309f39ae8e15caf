"""Whose key is it: of everything, of a cluster, or of a flow; and which value counts. Pure.

The rules are those of ``MirrorMakerConfig``: a flow's own key (``A->B.topics``) wins over one for
everything (``topics``); keys of clusters (``A.bootstrap.servers``) reach clients and workers only.
Of a key that stands twice the last counts.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from replicator.mm2.properties.java_properties import Entry
from replicator.mm2.properties.patterns import split_list

Scope = Literal["all", "cluster", "flow", "stranger"]

_FLOW = re.compile(r"(?P<source>\S+?)->(?P<target>[^\s.]+)\.(?P<name>.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Scoped:
    """A key without its prefix. ``owner`` is a cluster, a flow ``A->B``, or empty.

    The scope is ``stranger`` for a flow of clusters that the file does not list.
    """

    entry: Entry
    scope: Scope
    owner: str
    name: str


class Settings:
    """A properties file, sorted by whose the keys are."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self.entries = tuple(entries)
        self._last = {entry.key: entry for entry in self.entries}
        listed = self._last.get("clusters")
        self.clusters = tuple(dict.fromkeys(split_list(listed.value))) if listed else ()
        self._pairs = {f"{a}->{b}": (a, b) for a in self.clusters for b in self.clusters if a != b}

    def overridden(self) -> Iterator[tuple[Entry, Entry]]:
        """Entries that do not count, each with the later one that does."""
        for entry in self.entries:
            last = self._last[entry.key]
            if last is not entry:
                yield entry, last

    def everywhere(self, name: str) -> Entry | None:
        """A key without a prefix."""
        return self._last.get(name)

    def of_cluster(self, cluster: str, name: str) -> Entry | None:
        """A key of a cluster."""
        return self._last.get(f"{cluster}.{name}")

    def of_flow(self, source: str, target: str, name: str) -> Entry | None:
        """A key of a flow, of that flow alone."""
        return self._last.get(f"{source}->{target}.{name}")

    def for_flow(self, source: str, target: str, *names: str) -> Entry | None:
        """What counts for a flow: its own key, else the one for everything; first name first."""
        for name in names:
            found = self.of_flow(source, target, name) or self.everywhere(name)
            if found is not None:
                return found
        return None

    def pairs(self) -> tuple[tuple[str, str], ...]:
        """All ordered pairs of clusters."""
        return tuple(self._pairs.values())

    def enabled(self, source: str, target: str) -> bool:
        """Whether records are copied: the flow's own switch, or one for all flows.

        A switch for all counts only where MirrorMaker 2 starts the pair at all, which it does for
        heartbeats as well.
        """
        own = self.of_flow(source, target, "enabled")
        if own is not None:
            return is_true(own)
        beats = self.for_flow(source, target, "emit.heartbeats.enabled")
        return is_true(self.everywhere("enabled")) and (beats is None or is_true(beats))

    def scoped(self, entry: Entry) -> Scoped:
        """Whose key an entry is."""
        for pair in self._pairs:
            if entry.key.startswith(f"{pair}."):
                return Scoped(entry, "flow", pair, entry.key.removeprefix(f"{pair}."))
        match = _FLOW.fullmatch(entry.key)
        if match is not None:
            pair = f"{match['source']}->{match['target']}"
            return Scoped(entry, "stranger", pair, match["name"])
        for cluster in sorted(self.clusters, key=len, reverse=True):
            if entry.key.startswith(f"{cluster}."):
                return Scoped(entry, "cluster", cluster, entry.key.removeprefix(f"{cluster}."))
        return Scoped(entry, "all", "", entry.key)


def is_true(entry: Entry | None) -> bool:
    """Java's reading of a switch: ``true`` in any case, everything else is false."""
    return entry is not None and entry.value.strip().lower() == "true"


def number(entry: Entry) -> int | None:
    """The whole number an entry holds; None for any other text."""
    try:
        return int(entry.value.strip())
    except ValueError:
        return None
