"""What a broker says that knows of no live broker, not even of itself: it knows of nothing yet."""

from collections.abc import Collection

from replicator.errors import TransientBrokerError
from replicator.topology.plan import ClusterPlan


def require_live_brokers(brokers: Collection[object], cluster: ClusterPlan) -> None:
    """Refuses such an answer, whatever else it says.

    Raises:
        TransientBrokerError: an answer names no ``brokers``.
    """
    if not brokers:
        raise TransientBrokerError(
            f"a broker of {cluster.alias} answers that no broker lives",
            subject=f"cluster:{cluster.alias}",
            remedy="It has just started, or its controller has fenced it; the others are asked by turns. If that "
            "stays, look at the log of the controller.",
        )
