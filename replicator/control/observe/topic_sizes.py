"""Topics and partitions of a cluster, listed anew only when something about them has changed."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from replicator.errors import ReplicatorError
from replicator.kafka.admin import ClusterAdmin

if TYPE_CHECKING:
    from replicator.wire.topic_changes import TopicChanges

WARY_LOOKS = 3
"""How often topics are listed after a change: the next broker asked may not know of it yet."""


class TopicSizes:
    """Remembers the last list of one cluster; for one thread at a time.

    Attributes:
        revision: grows whenever the topics were, or may have been, changed.
    """

    def __init__(self, admin: ClusterAdmin, *, client_id: str) -> None:
        self._admin = admin
        self._client_id = client_id
        self._changes: TopicChanges | None = None
        self._wary = WARY_LOOKS
        self._known: Mapping[str, int] | None = None
        self.revision = 0

    def read(self, *, surely: bool) -> Mapping[str, int]:
        """Number of partitions by topic; the same object as long as none has changed.

        Args:
            surely: lists them in any case.

        Raises:
            ClusterError: the cluster does not answer, or refuses to be looked at.
        """
        if self._changed():
            self._wary = WARY_LOOKS
        if self._known is not None and not surely and not self._wary:
            return self._known
        self._wary = max(0, self._wary - 1)
        known = self._admin.topic_partitions()
        if known != self._known or self._wary:
            self.revision += 1
        if self._known is None or known != self._known:
            self._known = known
        return self._known

    def close(self) -> None:
        """Gives its connection back."""
        if self._changes is not None:
            self._changes.close()

    def _changed(self) -> bool:
        """Whether a look shows a change; what cannot be looked at counts as changed."""
        if self._known is None:
            return True  # a first look needs the list, and must not wait for an import
        if self._changes is None:
            from replicator.wire.topic_changes import TopicChanges  # slow to import

            self._changes = TopicChanges(self._admin.cluster, client_id=self._client_id)
        try:
            return self._changes.any()
        except ReplicatorError:
            return True  # listing them tells what is wrong
