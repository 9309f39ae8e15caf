"""What is still to be copied, read for the splitting of a flow's throttle."""

from dataclasses import dataclass

from replicator.control.lanes.throttle_shares import decide_shares, is_throttled
from replicator.control.store.read import read_checkpoints
from replicator.control.store.records import Share
from replicator.control.store.state import ControlState
from replicator.formats.checkpoint import Checkpoint, decode_checkpoints
from replicator.identifiers import checkpoints_topic
from replicator.kafka.admin import ClusterAdmin
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
        stored = read_checkpoints(
            self.pair,
            checkpoints_topic(self.plan.topology, self.pair.source.alias),
            range(layout.total),
            client_id=self.client_id,
        )
        checkpoints: dict[tuple[str, int], Checkpoint] = {}
        for records in stored.values():
            checkpoints.update(decode_checkpoints(records))
        keys = [
            (record.topic, number)
            for record in control.topics(self.pair.source.alias)
            for number in range(record.working_partitions)
        ]
        answers = self.source_admin.offsets(keys, "latest") if keys else {}
        ends = {key: answer for key, answer in answers.items() if isinstance(answer, int)}
        return decide_shares(self.pair, control, checkpoints=checkpoints, ends=ends)
