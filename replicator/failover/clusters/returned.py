"""A cluster that answers again after a failover: what it has, and whether somebody writes there."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from replicator.clock import Clock
from replicator.control.records.role_records import Denial, FenceRecord, ReturnProblem, ReturnRecord
from replicator.errors import ReplicatorError
from replicator.failover.clusters.fencing import apply_fence, plan_fence
from replicator.failover.clusters.lag import (
    first_record,
    link_keys,
    look_at,
    recorded_topics,
    stored_checkpoints,
)
from replicator.failover.clusters.link_clusters import (
    CLIENT_ID,
    LinkClusters,
    by_key,
    by_topic,
)
from replicator.failover.report.backlog import SourceLook, Unknown, lag_of, returned_short
from replicator.formats.checkpoint import Checkpoint
from replicator.identifiers import TopicPartition, control_topic
from replicator.kafka.logs.log_writer import LogWriter
from replicator.offsets.translation.probe import PartitionProbe
from replicator.policy.procedure import Fencing
from replicator.topology.roles import Role

SHORT_REMEDY = "Do not fail back to it as it is: re-seed it (runbook ReplicatorReturnedShort)."


def short_problem(cluster: str, words: str) -> ReturnProblem:
    """A partition of a returned cluster has less than what was copied from it."""
    return ReturnProblem(
        code="RETURNED_SHORT", subject=words.partition(":")[0],
        detail=f"{cluster} lost records that it had given: {words}", remedy=SHORT_REMEDY,
    )  # fmt: skip


def lost_by_returning(clusters: LinkClusters) -> tuple[Unknown, ...]:
    """Where a cluster that returns (``clusters.new``) has less than what was copied from it.

    Raises:
        ReplicatorError: a cluster does not answer.
    """
    recorded = recorded_topics(clusters, clusters.new)
    look = look_at(clusters, clusters.new, recorded, by_name=True)
    return returned_short(look, stored_checkpoints(clusters, clusters.new))


NOT_FENCED = "not fenced: "
"""How ``ReturnedCluster.fence`` begins where it should have fenced writers and could not."""


def unfenced_problems(link: str, cluster: str, fence: str) -> tuple[ReturnProblem, ...]:
    """A returned cluster whose writers could not be fenced, as a problem of the link. Pure."""
    if not fence.startswith(NOT_FENCED):
        return ()
    problem = ReturnProblem(
        code="RETURNED_UNFENCED", subject=link,
        detail=f"writers of {cluster}, which returned, are {fence}",
        remedy=f"Keep applications away from {cluster}, and correct what the method of 'fencing' needs.",
    )  # fmt: skip
    return (problem,)


@dataclass(slots=True)
class ReturnedCluster:
    """The passive cluster of a promoted link (``clusters.old``) while it answers; for one thread."""

    clusters: LinkClusters
    role: Role
    clock: Clock
    _recorded: dict[str, int] = field(default_factory=dict)
    _copied: dict[TopicPartition, Checkpoint] = field(default_factory=dict)
    _seen: dict[TopicPartition, int] = field(default_factory=dict)
    _looks: int = 0

    def look(self, known: ReturnRecord | None, fence: str) -> ReturnRecord:
        """What is to be on record of it now; ``known`` is what was on record in this epoch.

        Raises:
            ReplicatorError: a cluster does not answer.
        """
        clusters = self.clusters
        if not self._looks:
            self._recorded = recorded_topics(clusters, clusters.old)
            self._copied = stored_checkpoints(clusters, clusters.old)
        look = look_at(clusters, clusters.old, self._recorded, by_name=not self._looks % 5)
        self._looks += 1
        baseline = by_key(known.ends) if known is not None else dict(look.ends)
        writes = {
            (one.code, one.subject): one
            for one in (known.problems if known is not None else ())
            if one.code == "SPLIT_BRAIN"
        }
        for one in self._writes(look, baseline, first=known is None):
            writes.setdefault((one.code, one.subject), one)
        self._seen = dict(look.ends)
        alias = str(clusters.old.alias)
        unfenced = unfenced_problems(clusters.link.name, alias, fence)
        short = [short_problem(alias, one.words()) for one in returned_short(look, self._copied)]
        return ReturnRecord(
            link=clusters.link.name, cluster=alias, epoch=self.role.epoch,
            at_ms=known.at_ms if known is not None else round(self.clock.now() * 1000),
            ends=by_topic(baseline), fence=fence, problems=(*unfenced, *short, *writes.values()),
            tail=sum(lag_of(look.ends, look.starts, self._copied).values()),
        )  # fmt: skip

    def _writes(
        self, look: SourceLook, baseline: Mapping[TopicPartition, int], *, first: bool
    ) -> list[ReturnProblem]:
        """Records that came after the failover: by their time at the first look, then by growth."""
        clusters = self.clusters
        found: dict[TopicPartition, int] = {}
        if first:
            later = clusters.admin(clusters.old).known_offsets(look.ends, self.role.since_ms)
            found = {key: offset for key, offset in later.items() if offset >= 0}
        grown = [
            (key, self._seen.get(key, baseline.get(key, 0)))
            for key, end in look.ends.items()
            if end > self._seen.get(key, baseline.get(key, 0)) and key not in found
        ]
        if grown:
            with PartitionProbe(clusters.old, client_id=CLIENT_ID, clock=self.clock) as probe:
                for place in grown:
                    one = first_record(probe, [place])
                    if one is not None:
                        found[one.topic, one.partition] = one.offset
        old, new = clusters.old.alias, clusters.new.alias
        return [
            ReturnProblem(
                code="SPLIT_BRAIN", subject=f"{topic}/{number}",
                detail=f"{old} has a record at {offset} that was written after {new} had become "
                f"active",
                remedy=f"Stop the applications that write to {old}; failback lists and exports what is there.",
            )
            for (topic, number), offset in sorted(found.items())
        ]  # fmt: skip

    def fence(self, fencing: Fencing | None, held: FenceRecord | None, transition: str) -> str:
        """Fences its writers where the link says how; returns in words what holds now."""
        if fencing is None or fencing.method == "manual":
            return "no method to fence it by itself"
        clusters = self.clusters
        try:
            topics = {topic for topic, _ in link_keys(clusters, clusters.old)}
            now_ms = round(self.clock.now() * 1000)
            plan = plan_fence(
                clusters, clusters.old, fencing, topics=topics, held=held, at_ms=now_ms,
                by="the failover's watch",
            )  # fmt: skip
            before: tuple[Denial, ...] = held.denials if held is not None else ()
            standing = held is not None and held.state == "held" and held.method == fencing.method
            if standing and not plan.missing and fencing.method == "acl":
                return fencing.method
            rules = tuple(dict.fromkeys((*before, *plan.record.denials)))
            update = {"transition": transition, "epoch": self.role.epoch, "denials": rules}
            record = plan.record.model_copy(update=update)
            self.store(record)
            apply_fence(clusters, clusters.old, plan, clock=self.clock)
            self.store(record.model_copy(update={"state": "held"}))
        except ReplicatorError as error:
            return f"{NOT_FENCED}{error.message}"
        return fencing.method

    def store(self, record: FenceRecord | ReturnRecord) -> None:
        """Writes a record to the active cluster; a fence also to the one that it fences.

        Raises:
            ReplicatorError: it was not stored.
        """
        clusters = self.clusters
        both = (clusters.new, clusters.old)
        for cluster in both if isinstance(record, FenceRecord) else (clusters.new,):
            topic = control_topic(clusters.topology)
            with LogWriter(cluster, topic, client_id=CLIENT_ID, timeout_seconds=5.0) as writer:
                writer.write([record.encode()])
