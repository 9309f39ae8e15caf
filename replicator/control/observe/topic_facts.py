"""What a snapshot says of one cluster's topics, made anew only where something is new."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from replicator.control.reconcile.snapshot import TopicFacts
from replicator.kafka.admin import ClusterAdmin
from replicator.kafka.topics import TopicDescription


class TopicFactsCache:
    """Gives the same object as long as it rests on the same descriptions: to compare it costs nothing."""

    def __init__(self) -> None:
        self._described: Mapping[str, TopicDescription] | None = None
        self._known: dict[str, TopicFacts] = {}

    def of(
        self,
        admin: ClusterAdmin,
        described: Mapping[str, TopicDescription],
        with_settings: AbstractSet[str],
    ) -> dict[str, TopicFacts]:
        """Descriptions, with the settings of some topics as they are now."""
        asked = sorted(with_settings & described.keys())
        if not asked and described is self._described:
            return self._known
        settings = admin.topic_configs(asked) if asked else {}
        facts = {
            name: TopicFacts(
                topic_id=topic.topic_id,
                partitions=topic.partitions,
                replication_factor=topic.replication_factor,
                configs=settings.get(name),
            )
            for name, topic in described.items()
        }
        self._described, self._known = (None, {}) if asked else (described, facts)
        return facts
