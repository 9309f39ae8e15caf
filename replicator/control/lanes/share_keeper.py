"""What is still to be copied, read for the splitting of a flow's throttle."""

from dataclasses import dataclass

from replicator.control.lanes.throttle_shares import decide_shares, is_throttled
from replicator.control.store.records import Share
from replicator.control.store.state import ControlState
from replicator.kafka.admin import ClusterAdmin
from replicator.kafka.checkpoint_log import read_checkpoints
from replicator.topology.plan import PairPlan, Plan

SHARE_SECONDS = 2.0
"""How often needs are looked at: often enough that a lane which caught up frees its part."""


@dataclass(frozen=True, slots=True)
class ShareKeeper:
    """Reads positions and ends of one pair; blocking."""

    plan: Plan
    pair: PairPlan
    source_admin: ClusterAdmin
    client_id: str

    @property
    def needed(self) -> bool:
        """Whether any flow of the pair has a budget."""
        return is_throttled(self.pair)

    def shares(self, control: ControlState) -> tuple[Share, ...]:
        """The share records that should be written now.

        Raises:
            ClusterError: a cluster does not answer.
        """
        layout = control.layout(self.pair.source.alias)
        if layout is None or layout.state != "stable":
            return ()
        checkpoints = read_checkpoints(
            self.plan.topology, self.pair, client_id=self.client_id, partitions=layout.total
        )
        keys = [
            (record.topic, number)
            for record in control.topics(self.pair.source.alias)
            for number in range(record.working_partitions)
        ]
        ends = self.source_admin.known_offsets(keys, "latest")
        return decide_shares(self.pair, control, checkpoints=checkpoints, ends=ends)
