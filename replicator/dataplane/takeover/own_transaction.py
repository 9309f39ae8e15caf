"""A transaction of the lane's own id that its coordinator knows nothing of: found, and ended as aborted.

So it is where a log kept the records of a transaction and lost its marker. After a take-over the lane has
nothing open, so whatever is open under its id has no other end than the one that is written here.
"""

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from replicator.dataplane.takeover.target_looks import LastCopy
from replicator.errors import ReplicatorError
from replicator.identifiers import TopicPartition
from replicator.topology.plan import ClusterPlan

AbortIn = Callable[[TopicPartition], None]
"""Ends what the lane has open in a partition of the target; it must have nothing else open."""

_MARKER_SECONDS = 5.0
_PAUSE_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class OwnTransaction:
    """How a lane that has taken over ends what is open under its ``transactional_id``."""

    transactional_id: str
    abort_in: AbortIn

    def end_where_it_hides(
        self, cluster: ClusterPlan, place: TopicPartition, *, client_id: str
    ) -> None:
        """Ends it where it is open in ``place``; otherwise, or where nobody says whose that is, nothing. Blocking.

        Raises:
            KafkaException, ReplicatorError: the target does not let it end.
        """
        # Here, because the protocol's codec takes half a second to import.
        from replicator.wire.requests.open_transactions import open_transactions

        try:
            found = open_transactions(cluster, [place], client_id=client_id, timeout_seconds=3.0)
        except ReplicatorError:
            return
        if any(each.transactional_id == self.transactional_id for each in found):
            self.abort_in(place)


def without_hidden_copies(
    look: Callable[[], Mapping[TopicPartition, LastCopy]], abort_in: AbortIn
) -> Mapping[TopicPartition, LastCopy]:
    """The last copies in target partitions, once none of the lane's own is undecided.

    The lane's next transaction there would decide them: commit what was aborted, beside the copies that were made in
    its place, or abort what had been committed. So they are ended as aborted, and copied again where the checkpoint
    counts them. What is still open after that is somebody else's.

    Args:
        look: finds the last copies, by target partition.
        abort_in: ends what the lane has open.

    Raises:
        KafkaException, ReplicatorError: the target does not answer now, or the session is over.
    """
    copies = look()
    hidden = _undecided(copies)
    for place in hidden:
        abort_in(place)
    deadline = time.monotonic() + _MARKER_SECONDS
    # The coordinator writes markers after it has answered.
    while hidden and time.monotonic() < deadline:
        copies = look()
        hidden = _undecided(copies)
        time.sleep(_PAUSE_SECONDS if hidden else 0)  # no answer tells when a marker is written
    return copies


def _undecided(copies: Mapping[TopicPartition, LastCopy]) -> Collection[TopicPartition]:
    return [place for place, copy in copies.items() if copy.undecided]
