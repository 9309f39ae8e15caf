"""The stretch of a lane that is copied record by record, because the target refused one in it."""

from collections.abc import Collection

from replicator.dataplane.progress.partition_state import PartitionState
from replicator.identifiers import TopicPartition


class RetryRange:
    """How far each partition is copied carefully. For the lane's thread.

    Attributes:
        until: source offset at which the stretch ends, by source topic and partition; empty when
            there is none.
    """

    def __init__(self) -> None:
        self.until: dict[TopicPartition, int] = {}

    def remember(self, routes: Collection[PartitionState]) -> None:
        """Takes in everything that was produced and is not committed."""
        for route in routes:
            if route.position > route.committed >= 0:
                self.until[route.key] = max(route.position, self.until.get(route.key, 0))
        if not self.until:
            self.until = {route.key: route.position for route in routes}

    def is_past(self, routes: Collection[PartitionState]) -> bool:
        """Whether every partition that can go on has left it behind."""
        return not any(
            route.position < self.until.get(route.key, 0)
            for route in routes
            if not route.problem and not route.suspect
        )

    def forget(self) -> None:
        """It is over."""
        self.until = {}
