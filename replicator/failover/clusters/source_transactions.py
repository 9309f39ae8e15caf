"""Transactions that are open on a cluster that gives up its role: waited for, ended, or refused.

Behind the last stable offset nothing is copied, and no tail is read: what lies there is neither known
to be committed nor to be aborted.
"""

from collections.abc import Mapping

from replicator.clock import Clock
from replicator.errors import RefusedError, ReplicatorError
from replicator.failover.clusters.link_clusters import CLIENT_ID, LinkClusters
from replicator.failover.rules.request import OpenTransactions
from replicator.identifiers import TopicPartition
from replicator.kafka.logs.transactions import TransactionWriter
from replicator.topology.plan import ClusterPlan

MOST_ASKED = 32
"""Of how many partitions the transactions are named: some 10 ms each."""

OWN_PREFIX = "__replicator."
POLL_SECONDS = 0.2
ENDED_SECONDS = 15.0


def held_back(
    clusters: LinkClusters, cluster: ClusterPlan, upto: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """Last stable offsets of partitions where they lie below the given ends.

    Raises:
        ReplicatorError: a partition was not answered for.
    """
    stable = clusters.offsets(cluster, upto)
    return {key: stable[key] for key, end in upto.items() if stable[key] < end}


def name_transactions(cluster: ClusterPlan, partitions: Mapping[TopicPartition, int]) -> str:
    """The transactions that are open there, for people; the offsets where nobody names them."""
    from replicator.wire.requests.open_transactions import open_transactions  # slow to import

    asked = sorted(partitions)[:MOST_ASKED]
    try:
        found = open_transactions(cluster, asked, client_id=CLIENT_ID)
    except ReplicatorError as error:
        first = ", ".join(f"{t}/{n} from {partitions[t, n]}" for t, n in asked[:3])
        return f"transactions are open on {first} ({error.message})"
    return "; ".join(one.words() for one in found[:3]) or "they ended a moment ago"


def end_transactions(
    clusters: LinkClusters,
    cluster: ClusterPlan,
    upto: Mapping[TopicPartition, int],
    how: OpenTransactions,
    *,
    clock: Clock,
    patience_seconds: float,
) -> tuple[str, ...]:
    """Returns once no transaction is open below the given ends; the ids of those that were aborted.

    ``fence`` opens their transactional ids anew, which aborts them and fences their producers. Our own
    are left to end by themselves.

    Raises:
        RefusedError: one is still open, with its name.
        ReplicatorError: the cluster does not answer, or refuses to end one.
    """
    aborted: list[str] = []
    held = held_back(clusters, cluster, upto)
    if held and how == "fence":
        aborted = _abort(cluster, held)
        patience_seconds = max(patience_seconds, ENDED_SECONDS)
    deadline = clock.monotonic() + (0.0 if how == "refuse" else patience_seconds)
    while held and clock.monotonic() < deadline:
        clock.sleep(POLL_SECONDS)
        held = held_back(clusters, cluster, upto)
    if held:
        raise RefusedError(
            f"what lies behind open transactions is not known: {name_transactions(cluster, held)}",
            subject=f"cluster:{cluster.alias}",
            remedy="Let its application end it, wait for its timeout, or give --open-transactions fence.",
        )
    return tuple(aborted)


def _abort(cluster: ClusterPlan, held: Mapping[TopicPartition, int]) -> list[str]:
    from replicator.wire.requests.open_transactions import open_transactions  # slow to import

    found = open_transactions(cluster, held, client_id=CLIENT_ID)
    names = sorted({one.transactional_id for one in found if one.transactional_id})
    wanted = [name for name in names if not name.startswith(OWN_PREFIX)]
    for name in wanted:
        with TransactionWriter(cluster, name, client_id=f"{CLIENT_ID}-abort") as writer:
            writer.open()
    return wanted
