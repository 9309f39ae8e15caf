"""How many brokers a cluster has: what a client may be sent at once depends on it."""

import threading
import time

from replicator.errors import ReplicatorError
from replicator.topology.plan import ClusterPlan
from replicator.wire.connection.leader import any_broker
from replicator.wire.connection.protocol import MetadataRequest

_METADATA_VERSION = 9
_ASK_SECONDS = 1.0
_KEPT_SECONDS = 600.0
_FAILED_SECONDS = 10.0

_lock = threading.Lock()
_known: dict[tuple[str, ...], tuple[float, int]] = {}
"""By bootstrap servers: until when the number holds, and the number."""


def broker_count(cluster: ClusterPlan, *, client_id: str) -> int:
    """Its brokers that are up; asked once in ten minutes.

    Where it does not answer, what was known last, or the number of bootstrap servers.
    """
    key = cluster.bootstrap_servers
    with _lock:
        until, count = _known.get(key, (0.0, max(1, len(key))))
    now = time.monotonic()
    if now < until:
        return count
    kept = _FAILED_SECONDS
    deadline = now + _ASK_SECONDS
    try:
        with any_broker(cluster, client_id=client_id, deadline=deadline) as connection:
            answer = connection.call(
                MetadataRequest(topics=[]), newest=_METADATA_VERSION, deadline=deadline
            )
        count, kept = max(1, len(answer.brokers)), _KEPT_SECONDS
    except ReplicatorError:
        pass  # the clients that work with the cluster report what is wrong
    with _lock:
        _known[key] = (now + kept, count)
    return count
