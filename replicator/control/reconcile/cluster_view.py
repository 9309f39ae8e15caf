"""What the topics of one cluster are like, under a version that grows with every change. Pure.

A view is a frozen value. The one after a look says which topics changed since any earlier version, so
that a round looks at those alone.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from replicator.policy.copies.topic_config import ConfigValue

KEPT_CHANGES = 64
"""How many versions back a view can say what changed."""


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """One topic of one cluster; ``configs`` is None while its settings could not be read."""

    topic_id: str
    partitions: int
    replication_factor: int
    configs: Mapping[str, ConfigValue] | None = None


@dataclass(frozen=True, slots=True)
class ClusterView:
    """One cluster at one version.

    Attributes:
        sizes: partitions of every topic of the cluster, by name.
        topics: facts of the topics that flows take from it or write to it.
        version: how many changes came before.
        changes: the names in each of the last changes, newest last.
    """

    sizes: Mapping[str, int] = field(default_factory=dict)
    topics: Mapping[str, TopicFacts] = field(default_factory=dict)
    version: int = 0
    changes: tuple[frozenset[str], ...] = ()

    def listed(self, sizes: Mapping[str, int]) -> "ClusterView":
        """The view after topics were listed; the same one when none came, went or grew."""
        held = self.sizes
        changed = frozenset(
            {name for name, size in sizes.items() if held.get(name) != size}
            | (held.keys() - sizes.keys())
        )
        if not changed:
            return self
        topics = self.topics
        if gone := changed & topics.keys() - sizes.keys():
            topics = {name: facts for name, facts in topics.items() if name not in gone}
        return self._after(changed, sizes, topics)

    def described(self, facts: Mapping[str, TopicFacts | None]) -> "ClusterView":
        """The view with these facts, None to leave a topic out; the same one when none differs."""
        changed = frozenset(name for name, one in facts.items() if self.topics.get(name) != one)
        if not changed:
            return self
        topics = dict(self.topics)
        for name in changed:
            one = facts[name]
            if one is None:
                del topics[name]
            else:
                topics[name] = one
        return self._after(changed, self.sizes, topics)

    def changed_since(self, version: int) -> AbstractSet[str] | None:
        """Topics that came, went or changed after that version; None when it is too long ago."""
        behind = self.version - version
        if behind > len(self.changes):
            return None
        return frozenset().union(*self.changes[len(self.changes) - behind :])

    def _after(
        self, changed: frozenset[str], sizes: Mapping[str, int], topics: Mapping[str, TopicFacts]
    ) -> "ClusterView":
        changes = (*self.changes, changed)[-KEPT_CHANGES:]
        return ClusterView(sizes, topics, self.version + 1, changes)
