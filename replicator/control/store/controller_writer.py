"""The controller's writer: atomic writes to control topics, and the fence around lanes.

All writes of a controller carry one transactional id, so the one that opened its writer last is the
controller, and one that was replaced fails at its next write. One write is one transaction, over as
many topics and partitions as it needs: either all of it holds or nothing.
"""

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from replicator.identifiers import controller_transactional_id, lane_transactional_id
from replicator.kafka.logs.transactions import TransactionWriter
from replicator.topology.plan import PairPlan

_FENCES_AT_ONCE = 4


@dataclass(frozen=True, slots=True)
class Placed:
    """One record and the partition it must go to; a ``value`` of None is a tombstone."""

    topic: str
    partition: int
    key: bytes
    value: bytes | None


class ControllerWriter:
    """Writes as the controller of one pair. Not thread-safe: one controller, one writer."""

    def __init__(self, pair: PairPlan, topology: str, *, client_id: str) -> None:
        """Becomes the controller; an earlier one is fenced.

        Raises:
            ClusterError: the target does not answer or lacks a right.
        """
        self._pair = pair
        self._topology = topology
        self._client_id = client_id
        self._transactions = self._open(
            controller_transactional_id(topology, pair.source.alias, pair.target.alias)
        )

    @property
    def spent(self) -> bool:
        """Whether a write failed: what is stored is not known, so read it and open another."""
        return not self._transactions.is_open

    def write(self, records: Sequence[Placed]) -> None:
        """Writes all records in one transaction and returns when it holds.

        Raises:
            FencedError: another controller took over.
            UnknownOutcomeError: no answer to the commit; read again before going on.
            ClusterError: nothing was written.
        """
        if not records:
            return
        self._transactions.begin(f"write {len(records)} control records")
        for record in records:
            self._transactions.add(record.topic, record.partition, record.key, record.value)
        self._transactions.commit()

    def fence_lanes(self, lanes: Iterable[int]) -> None:
        """Initialises the transactional id of every lane: no earlier owner can commit any more."""
        with ThreadPoolExecutor(_FENCES_AT_ONCE, thread_name_prefix="fence") as pool:
            list(pool.map(self._fence, lanes))

    def close(self) -> None:
        """Gives the connections back; the controller's id stays ours until another takes it."""
        self._transactions.close()

    def _fence(self, lane: int) -> None:
        source, target = self._pair.source.alias, self._pair.target.alias
        self._open(lane_transactional_id(self._topology, source, target, lane)).close()

    def _open(self, transactional_id: str) -> TransactionWriter:
        writer = TransactionWriter(self._pair.target, transactional_id, client_id=self._client_id)
        writer.open()
        return writer
