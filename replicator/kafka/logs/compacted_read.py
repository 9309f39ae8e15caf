"""Reading some partitions of a compacted topic once, to their end."""

from collections.abc import Iterable, Mapping

from replicator.kafka.logs.compacted_log import LogTail
from replicator.topology.plan import ClusterPlan


def read_compacted(
    cluster: ClusterPlan,
    topic: str,
    partitions: Iterable[int] = (0,),
    *,
    client_id: str,
    timeout_seconds: float = 10.0,
    past_open_transactions: bool = False,
    known_to_exist: bool = False,
    reaches: Mapping[int, int] | None = None,
) -> dict[int, dict[bytes, bytes]]:
    """The last value of every key, for each partition, up to its end at the time of the call.

    ``known_to_exist``: somebody has just made the topic, or seen it. Then a broker that says that it does not exist
    has not heard of it yet, and is asked again for HEARD_SECONDS.

    ``past_open_transactions`` waits for transactions that are open there: what was committed behind the first
    record of an open one is hidden from readers until it ends. ``reaches`` as ``LogTail.load`` has it.

    Raises:
        NotFoundError: there is no such topic.
        UnreachableError: the end was not reached in time.
        ReplicatorError: the topic cannot be read, see its class.
    """
    with LogTail(cluster, topic, partitions, client_id=client_id) as tail:
        return tail.load(
            timeout_seconds=timeout_seconds,
            past_open_transactions=past_open_transactions,
            known_to_exist=known_to_exist,
            reaches=reaches,
        )
