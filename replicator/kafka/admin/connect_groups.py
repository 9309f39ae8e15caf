"""Groups of Kafka Connect workers, which are no consumer groups.

The admin client's ``describe_consumer_groups`` refuses them by their protocol type. Its older
``list_groups`` describes every group there is; it asks each broker, so it is for commands, not loops.
"""

import warnings
from dataclasses import dataclass
from typing import Any

from replicator.kafka.admin.groups import describe_groups
from replicator.kafka.admin.session import AdminSession
from replicator.topology.plan import ClusterPlan


@dataclass(frozen=True, slots=True)
class WorkerGroup:
    """A group of workers; ``state`` is the cluster's word, empty for a group that does not exist."""

    group: str
    state: str
    members: int

    @property
    def active(self) -> bool:
        """Whether a worker is in it, or joins it just now."""
        return self.members > 0 or self.state not in {"", "Dead", "Empty"}


def describe_worker_group(
    cluster: ClusterPlan, group: str, *, client_id: str, timeout_seconds: float = 10.0
) -> WorkerGroup:
    """State and number of members of a group of any kind; blocking.

    Raises:
        NotAuthorizedError: our user lacks Describe on the group.
        ReplicatorError: a broker of the cluster does not answer, or refuses.
    """

    def ask(client: Any, seconds: float) -> list[Any]:  # noqa: ANN401 - the call carries no types
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            found: list[Any] = client.list_groups(group=group, timeout=seconds)
            return found

    session = AdminSession(cluster, client_id=client_id, timeout_seconds=timeout_seconds)
    try:
        for each in session.direct(ask, f"describe group {group}"):
            if each.id == group:
                return WorkerGroup(group, each.state or "", len(each.members))
        # A listing leaves out what our user may not describe; asked by name, the cluster says so.
        describe_groups(session, [group])
    finally:
        session.close()
    return WorkerGroup(group, "", 0)
