"""What is asked of consumer groups, over one set of connections."""

from replicator.topology.plan import ClusterPlan
from replicator.wire.groups.coordinators import GroupCoordinators
from replicator.wire.groups.group_offsets import GroupOffsets
from replicator.wire.groups.group_states import GroupStates


class Groups:
    """States and positions of one cluster's groups. For one thread at a time."""

    def __init__(self, cluster: ClusterPlan, *, client_id: str) -> None:
        self._coordinators = GroupCoordinators(cluster, client_id=client_id)
        self.states = GroupStates(self._coordinators)
        self.offsets = GroupOffsets(self._coordinators)

    def close(self) -> None:
        """Hangs up; the next question finds the coordinators anew."""
        self._coordinators.close()
