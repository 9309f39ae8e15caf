"""Which records of a log were copied there in whole batches, for readers who do not see producer ids.

The client library hides batch headers. Where a log may hold copies without a header, its batches are
fetched a second time here, for their headers alone: twice the reading, and never a loop.
"""

from bisect import bisect_right
from collections.abc import Sequence

from replicator.batches.registry.producer_registry import SourceOf
from replicator.errors import SourceDataLostError
from replicator.identifiers import TopicPartition
from replicator.topology.plan import ClusterPlan
from replicator.wire.requests.raw_log import RawLog

_KEPT = 4096
"""Stretches remembered per partition; a reader goes forward."""


class CopiedRanges:
    """Of one cluster; for one thread.

    Attributes:
        active: always; see ``Rewriter``.
    """

    active = True

    def __init__(
        self,
        cluster: ClusterPlan,
        source_of: SourceOf,
        *,
        blocked: Sequence[str],
        client_id: str,
    ) -> None:
        """``source_of`` is the registry's word on a producer id, ``blocked`` whose copies are asked for."""
        self._cluster = cluster
        self._source_of = source_of
        self._blocked = frozenset(blocked)
        self._client_id = client_id
        self._logs: dict[TopicPartition, RawLog] = {}
        self._seen: dict[TopicPartition, list[tuple[int, int, bool]]] = {}

    def holds(self, topic: str, partition: int, offset: int) -> bool:
        """Whether the record at an offset was copied there from a blocked cluster in a whole batch.

        Raises:
            RegistryLostError: the registry lacks what it held before.
            ReplicatorError: the cluster cannot be read; nothing is known about the record.
        """
        key = (topic, partition)
        found = self._known(key, offset)
        if found is None:
            self._learn(key, offset)
            found = self._known(key, offset)
        return bool(found)

    def close(self) -> None:
        """Hangs up."""
        for log in self._logs.values():
            log.close()
        self._logs.clear()

    def _known(self, key: TopicPartition, offset: int) -> bool | None:
        stretches = self._seen.get(key, [])
        at = bisect_right(stretches, offset, key=lambda each: each[0]) - 1
        if at < 0 or offset > stretches[at][1]:
            return None
        return stretches[at][2]

    def _learn(self, key: TopicPartition, offset: int) -> None:
        log = self._logs.get(key)
        if log is None:
            log = self._logs[key] = RawLog(self._cluster, *key, client_id=self._client_id)
        try:
            batches = log.batches(offset)
        except SourceDataLostError:
            return  # gone since it was read: then it was read before, and its reader finds out
        stretches = self._seen.setdefault(key, [])
        if stretches and offset < stretches[-1][1]:
            stretches.clear()  # the reader went back, or the log is another one
        for header, _ in batches:
            source = self._source_of(header.producer_id)
            copied = source in self._blocked
            stretches.append((max(header.base_offset, offset), header.last_offset, copied))
        del stretches[:-_KEPT]
