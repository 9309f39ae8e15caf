"""Keeps the view of one cluster current with as few questions as possible.

A round begins with one cheap look that tells whether anything about the cluster's topics changed.
Topics are listed only then, described only where the list shows another size, and settings are read
only for the topics that the caller names.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

from replicator.control.reconcile.cluster_view import ClusterView, TopicFacts
from replicator.errors import ReplicatorError
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.kafka.admin.topics import TopicDescription
from replicator.policy.copies.topic_config import ConfigValue

if TYPE_CHECKING:
    from replicator.wire.requests.topic_changes import TopicChanges

WARY_LOOKS = 3
"""How often topics are listed after a change: the next broker asked may not know of it yet."""

_Settings = Mapping[str, ConfigValue]


class ClusterReader:
    """Reads one cluster; for one thread at a time.

    Attributes:
        view: what is known.
        revision: grows whenever a look showed that topics changed, or may have changed.
    """

    def __init__(self, admin: ClusterAdmin, *, client_id: str) -> None:
        self.view = ClusterView()
        self.revision = 0
        self._admin = admin
        self._client_id = client_id
        self._changes: TopicChanges | None = None
        self._wary = WARY_LOOKS
        self._listed = False
        self._described_revision = -1
        self._followed: AbstractSet[str] = frozenset()
        self._stale: AbstractSet[str] = frozenset()
        self._settings_read: dict[str, _Settings] = {}

    @property
    def outdated(self) -> bool:
        """Whether topics may have changed since all of them were described."""
        return self.revision != self._described_revision

    def look(self, *, surely: bool) -> ClusterView:
        """Lists the topics if a look shows a change.

        Args:
            surely: lists them in any case.

        Raises:
            ClusterError: the cluster does not answer, or refuses to be looked at.
        """
        if self._changed():
            self._wary = WARY_LOOKS
        if self._listed and not surely and not self._wary:
            return self.view
        self._wary = max(0, self._wary - 1)
        before = self.view
        self.view = before.listed(self._admin.topic_partitions())
        self._listed = True
        if self.view is not before or self._wary:
            self.revision += 1
        if self.view is not before:
            self._stale |= self.view.changes[-1] & self._followed
        return self.view

    def follow(self, names: AbstractSet[str]) -> None:
        """From now on the view holds facts of these topics and no others."""
        left = self._followed - names
        self._stale = (self._stale | (names - self._followed)) & names
        self._followed = names
        for name in left:
            self._settings_read.pop(name, None)
        self.view = self.view.described(dict.fromkeys(left & self.view.topics.keys()))

    def describe(self, *, anew: bool, settings: AbstractSet[str]) -> ClusterView:
        """Describes followed topics that are new or have another size, and reads settings.

        Args:
            anew: describes all followed topics.
            settings: topics whose settings are read as they are now; those of topics that have just
                been described for the first time are read in any case.

        Raises:
            ClusterError: the cluster does not answer, or refuses to be looked at.
        """
        revision = self.revision
        stale = self._followed if anew else self._stale
        found = self._admin.describe_topics(sorted(stale)) if stale else {}
        fresh = {name: self._facts(name, found.get(name)) for name in stale}
        unread = {name for name, facts in fresh.items() if facts and facts.configs is None}
        asked = sorted(((settings & self._followed) | unread) - (stale - found.keys()))
        read = self._admin.topic_configs(asked) if asked else {}
        for name in asked:
            facts = fresh.get(name) or self.view.topics.get(name)
            # Equal settings are the same object.
            same = name not in fresh and self._settings_read.get(name) is read.get(name)
            if facts is not None and not (same and facts.configs is not None):
                fresh[name] = TopicFacts(
                    facts.topic_id, facts.partitions, facts.replication_factor,
                    read.get(name),
                )  # fmt: skip
        self._settings_read.update(read)
        self.view = self.view.described(fresh)
        sizes = self.view.sizes
        self._stale = {
            name for name in stale if not (one := fresh[name]) or one.partitions != sizes.get(name)
        }
        if anew:
            self._described_revision = revision
        return self.view

    def close(self) -> None:
        """Closes the connection of its own; the admin client is its owner's."""
        if self._changes is not None:
            self._changes.close()

    def _facts(self, name: str, topic: TopicDescription | None) -> TopicFacts | None:
        """What a description says; settings are kept as long as it is the same topic."""
        if topic is None:
            return None
        held = self.view.topics.get(name)
        kept = held.configs if held is not None and held.topic_id == topic.topic_id else None
        return TopicFacts(topic.topic_id, topic.partitions, topic.replication_factor, kept)

    def _changed(self) -> bool:
        """Whether a look shows a change; what cannot be looked at counts as changed."""
        if not self._listed:
            return True  # a first look needs the list, and must not wait for an import
        if self._changes is None:
            from replicator.wire.requests.topic_changes import TopicChanges  # slow to import

            self._changes = TopicChanges(self._admin.cluster, client_id=self._client_id)
        try:
            return self._changes.any()
        except ReplicatorError:
            return True  # listing them tells what is wrong
