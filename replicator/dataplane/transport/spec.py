"""What a lane has to do: frozen, JSON-friendly, decided elsewhere.

The control room decides what each lane works on and the lane processes receive it as JSON; nothing
in these types depends on a client library. References to secrets travel, secrets never do.
"""

from dataclasses import dataclass
from typing import Literal

from replicator.identifiers import FlowId, flow_id
from replicator.policy.capacity.memory_shares import MemoryShare
from replicator.policy.copies.provenance import Arrivals
from replicator.policy.values import (
    Delivery,
    DropRule,
    OnRecordError,
    OnTruncation,
    Priority,
    Provenance,
    StartFrom,
    Throttle,
)
from replicator.topology.plan import ClusterPlan


@dataclass(frozen=True, slots=True)
class PartitionWork:
    """One source partition that a lane copies.

    ``topic_id`` is the source topic's id as the controller saw it, so that a recreated topic is
    noticed. ``max_message_bytes`` is the target topic's limit. ``accept_gap`` is the token of an
    operator's decision to let a stopped partition go on ("" when there is none); a lane acts on a
    token once and stores it in the checkpoint. ``unreadable``: the decision is about these damaged source
    offsets, half open, and nothing else. ``late``: it appeared after the flow was first applied, and is
    copied from its beginning. ``backfill_run`` names the run of Spark that last copied it
    ("" when none did): its checkpoint was not written by the lane. ``in_range``: a bounded copy copies it now, under a
    transactional id of its own.
    """

    topic: str
    partition: int
    target_topic: str
    topic_id: str
    priority: Priority = "normal"
    max_message_bytes: int = 1048588
    accept_gap: str = ""
    unreadable: tuple[int, int] | None = None
    backfill_run: str = ""
    late: bool = False
    in_range: bool = False


@dataclass(frozen=True, slots=True)
class LaneSettings:
    """The flow's policy as far as a lane needs it; a change of any field restarts the lane."""

    delivery: Delivery
    commit_interval_seconds: float
    provenance: Provenance
    blocked: tuple[str, ...]
    start_from: StartFrom
    on_record_error: OnRecordError
    on_truncation: OnTruncation
    filters: tuple[DropRule, ...] = ()
    transforms: tuple[str, ...] = ()
    arrivals: Arrivals = Arrivals()  # noqa: RUF009  frozen, so one instance is safe
    cyclic: bool = False
    """Whether records of this flow can come back: then no record may lose its hop header."""
    engine: Literal["records", "batches"] = "records"
    returns: bool = False
    """As ``cyclic``, counting ways back that rest until a role changes: then what stands on the source
    may be copies of what the target has, with or without a header."""
    met_by_others: bool = False
    """Whether another topology copies to the source from where this flow leads; then ``returns`` too."""

    @property
    def transactional(self) -> bool:
        """Whether copies and checkpoints are committed together."""
        return self.delivery == "exactly-once"


@dataclass(frozen=True, slots=True)
class LaneSpec:
    """One lane: who it is, between which clusters, under which rules, on which partitions."""

    topology: str
    link: str
    source: ClusterPlan
    target: ClusterPlan
    lane: int
    layout_epoch: int
    settings: LaneSettings
    work: tuple[PartitionWork, ...]
    throttle: Throttle = Throttle()  # noqa: RUF009  frozen, so one instance is safe
    """This lane's share of the flow's budget; updated in place."""
    role_version: tuple[int, int] = (0, 0)
    """Epoch and revision of the role it copies under."""
    memory: MemoryShare = MemoryShare()  # noqa: RUF009  frozen, so one instance is safe
    """Its part of the worker's memory; the pool of lane processes fills it in."""

    @property
    def pair(self) -> FlowId:
        """The pair as people write it."""
        return flow_id(self.source.alias, self.target.alias)


def handed_over(old: LaneSpec, new: LaneSpec) -> bool:
    """Whether the new spec has partitions that a backfill copied since the old one was made.

    What the lane read of the checkpoints topic when it took over is then outdated.
    """
    known = {(item.topic, item.partition, item.backfill_run) for item in old.work}
    return any(
        item.backfill_run and (item.topic, item.partition, item.backfill_run) not in known
        for item in new.work
    )


def lane_client_id(spec: LaneSpec) -> str:
    """What brokers see of the lane in their logs and quotas."""
    return f"replicator-{spec.topology}-{spec.source.alias}-{spec.target.alias}-lane-{spec.lane}"
