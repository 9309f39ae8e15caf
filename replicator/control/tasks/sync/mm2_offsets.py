"""Periodic task: MirrorMaker 2's checkpoints and offset syncs, for clients that know its topics.

Checkpoints are our own translations in MirrorMaker 2's bytes. They are written for every group the
links select, whether its positions are carried over (`sync.groups`) or not: that is how
MirrorMaker 2 does it, and what `RemoteClusterUtils.translateOffsets` reads.
"""

from collections.abc import Iterable
from dataclasses import replace

from replicator.blocking import finished
from replicator.control.reconcile.topic_selection import selected_topics
from replicator.control.tasks.sync.task_translator import task_translator
from replicator.control.tasks.task import TaskContext
from replicator.errors import ReplicatorError, StoredFormatError
from replicator.identifiers import mm2_transactional_id
from replicator.kafka.logs.compacted_read import read_compacted
from replicator.kafka.logs.log_writer import LogWriter
from replicator.mm2.topics.due import checkpoints_due, syncs_due
from replicator.mm2.topics.formats import Checkpoint, OffsetSync, decode_offset_sync
from replicator.mm2.topics.names import checkpoints_topic, offset_syncs_topic
from replicator.mm2.topics.topics import ensure_mm2_topic
from replicator.offsets.groups.group_report import SyncReport
from replicator.offsets.groups.group_sync import GroupSync
from replicator.offsets.index.index import index_pairs
from replicator.offsets.index.stored import StoredPartitions
from replicator.policy.copies.selection import is_internal_topic
from replicator.problem import Problem
from replicator.topology.plan import FlowPlan, PairPlan


class Mm2OffsetsTask:
    """A periodic task, see ``task.PeriodicTask``."""

    name = "MirrorMaker 2 checkpoints"

    def __init__(self, context: TaskContext, interval_seconds: float) -> None:
        self.interval_seconds = interval_seconds
        self._context = context
        self._pair = _for_clients(context.pair)
        client_id = f"{context.client_id}-mm2"
        self._client_id = client_id
        self._translator = task_translator(context, "mm2")
        self._survey = GroupSync(
            context.plan, self._pair, translator=self._translator, clock=context.clock
        )
        source, target = context.pair.source, context.pair.target
        self._checkpoints = LogWriter(
            target,
            checkpoints_topic(source.alias),
            client_id=client_id,
            # A controller that was replaced must not put an older position over a newer one.
            transactional_id=mm2_transactional_id(
                context.plan.topology, source.alias, target.alias
            ),
        )
        self._syncs = LogWriter(source, offset_syncs_topic(target.alias), client_id=client_id)
        self._written: dict[bytes, Checkpoint] = {}
        self._synced: dict[bytes, OffsetSync] = {}
        self._ready = False

    async def run(self) -> tuple[Problem, ...]:
        """One survey of all groups, and what is new in it and in the index."""
        try:
            report = await self._write_all()
        except ReplicatorError:
            self._ready = False  # a topic may have been deleted; then all is written again
            raise
        return tuple(
            Problem(
                "GROUP_REFUSED",
                f"group:{group.group}",
                f"no checkpoint of the group '{group.group}' was written: {group.reason}",
                "It is retried automatically.",
            )
            for group in report.groups
            if group.state == "failed"
        )

    def close(self) -> None:
        """Closes its connections."""
        self._checkpoints.close()
        self._syncs.close()
        self._translator.close()

    async def _write_all(self) -> SyncReport:
        if not self._ready:
            await finished(self._prepare)
            self._ready = True
        report = await self._survey.run_once(commit=False)
        await finished(self._write_checkpoints, checkpoints_of(report))
        await finished(self._write_syncs)
        return report

    def _prepare(self) -> None:
        """Makes the topics, and reads which offset syncs are there already."""
        source, target = self._context.pair.source, self._context.pair.target
        ensure_mm2_topic(self._translator.admin(target), self._checkpoints.topic)
        ensure_mm2_topic(self._translator.admin(source), self._syncs.topic)
        stored = read_compacted(
            source, self._syncs.topic, client_id=self._client_id, known_to_exist=True
        )
        self._written, self._synced = {}, {}
        for key, value in stored[0].items():
            try:
                self._synced[key] = decode_offset_sync(key, value)
            except StoredFormatError:
                continue  # not ours to correct; its key is not one that we write

    def _write_checkpoints(self, found: Iterable[Checkpoint]) -> None:
        due = checkpoints_due(found, self._written)
        self._checkpoints.write((one.key(), one.value()) for one in due)
        self._written.update((one.key(), one) for one in due)

    def _write_syncs(self) -> None:
        source, target = self._context.pair.source, self._context.pair.target
        counts = self._translator.admin(source).topic_partitions()
        aliases = [cluster.alias for cluster in self._context.plan.clusters]
        stored = self._translator.stored(source, target)
        due: list[OffsetSync] = []
        for one in selected_topics(self._context.pair, counts, aliases):
            if one.problem is not None or not one.flow.policy.mm2_compatibility:
                continue
            if is_internal_topic(one.topic):
                continue  # what the replicator copies for itself is nobody else's business
            for number in range(counts[one.topic]):
                pairs = syncs_of(stored, one.topic, number)
                last = self._synced.get(pairs[-1].key()) if pairs else None
                due.extend(syncs_due(pairs, last))
        self._syncs.write((sync.key(), sync.value()) for sync in due)
        self._synced.update((sync.key(), sync) for sync in due)


def checkpoints_of(report: SyncReport) -> list[Checkpoint]:
    """Every position of the survey that stands for one on the target. Pure."""
    return [
        Checkpoint(
            group=group.group,
            topic=one.target_topic,
            partition=one.partition,
            upstream=one.source_offset,
            downstream=one.right_offset,
            metadata=one.metadata,
        )
        for group in report.groups
        for one in group.partitions
        if one.right_offset is not None
    ]


def syncs_of(stored: StoredPartitions, topic: str, partition: int) -> list[OffsetSync]:
    """The index of one source partition, in MirrorMaker 2's words. Pure."""
    pairs = index_pairs(stored.of(topic, partition).entries.values())
    return [OffsetSync(topic, partition, pair.source, pair.target) for pair in pairs]


def mm2_offsets_task(context: TaskContext) -> Mm2OffsetsTask | None:
    """The task, or None where no link of the pair wants it."""
    flows = _for_clients(context.pair).flows
    if not flows:
        return None
    return Mm2OffsetsTask(context, min(flow.policy.sync_groups.interval_seconds for flow in flows))


def _for_clients(pair: PairPlan) -> PairPlan:
    """The pair's links with compatibility, as if each carried its groups over."""
    flows = tuple(_surveyed(flow) for flow in pair.flows if flow.policy.mm2_compatibility)
    return replace(pair, flows=flows)


def _surveyed(flow: FlowPlan) -> FlowPlan:
    groups = replace(flow.policy.sync_groups, enabled=True)
    return replace(flow, policy=replace(flow.policy, sync_groups=groups))
