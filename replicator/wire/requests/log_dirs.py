"""How many bytes each partition takes on the brokers' disks; confluent-kafka cannot ask for that."""

import time
from collections.abc import Collection, Iterable

from replicator.errors import ReplicatorError
from replicator.identifiers import TopicPartition
from replicator.topology.plan import ClusterPlan
from replicator.wire.connection.connection import BrokerConnection
from replicator.wire.connection.errors import code_error
from replicator.wire.connection.leader import any_broker
from replicator.wire.connection.live_brokers import require_live_brokers
from replicator.wire.connection.protocol import DescribeLogDirsRequest, MetadataRequest

_CLIENT_ID = "replicator-sizes"
_METADATA_VERSION = 9
_VERSION = 4


def partition_bytes(
    cluster: ClusterPlan, topics: Collection[str], *, timeout_seconds: float = 10.0
) -> dict[tuple[str, int], int]:
    """Bytes on disk of the largest replica of each partition; what no broker tells is left out.

    Raises:
        NotAuthorizedError: our user lacks DESCRIBE on the cluster.
        ReplicatorError: no broker can be reached, or all refuse us.
    """
    deadline = time.monotonic() + timeout_seconds
    with any_broker(cluster, client_id=_CLIENT_ID, deadline=deadline) as connection:
        wanted = MetadataRequest(topics=[], allow_auto_topic_creation=False)
        answer = connection.call(wanted, newest=_METADATA_VERSION, deadline=deadline)
    require_live_brokers(answer.brokers, cluster)
    found: dict[tuple[str, int], int] = {}
    failure: ReplicatorError | None = None
    for broker in answer.brokers:
        try:
            sizes = _sizes(cluster, (broker.host, broker.port), topics, deadline)
        except ReplicatorError as error:
            failure = error  # one broker that is down must not hide what the others know
            continue
        for key, size in sizes.items():
            found[key] = max(size, found.get(key, 0))
    if failure is not None and not found:
        raise failure
    return found


def _sizes(
    cluster: ClusterPlan, address: tuple[str, int], topics: Collection[str], deadline: float
) -> dict[tuple[str, int], int]:
    with BrokerConnection(cluster, address, client_id=_CLIENT_ID, deadline=deadline) as connection:
        answer = connection.call(
            DescribeLogDirsRequest(topics=None), newest=_VERSION, deadline=deadline
        )
    wanted = frozenset(topics)
    found: dict[tuple[str, int], int] = {}
    for folder in answer.results:
        if folder.error_code:
            raise code_error(
                folder.error_code, subject=f"cluster:{cluster.alias}", doing="read sizes of logs"
            )
        for topic in folder.topics:
            if topic.name not in wanted:
                continue
            for part in topic.partitions:
                if not part.is_future_key:
                    found[topic.name, part.partition_index] = part.partition_size
    return found


def sizes_on_disk(cluster: ClusterPlan, topics: Iterable[str]) -> dict[TopicPartition, int]:
    """Bytes of each partition's log; empty where brokers do not tell, because it is a forecast only."""
    from replicator.wire.requests.log_dirs import partition_bytes

    wanted = frozenset(topics)
    if not wanted:
        return {}
    try:
        return partition_bytes(cluster, wanted)
    except ReplicatorError:
        return {}
