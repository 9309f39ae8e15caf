"""Taking over from MirrorMaker 2: where each partition will start, and whether it may be done.

Everything here only reads. What could make records be lost or copied twice is a refusal: a
MirrorMaker 2 that still runs, copies under other names, checkpoints or workers of our own, and flows
that would carry its copies back, because they say nothing of where they came from.
"""

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from replicator.control.operator.mm2_adoption_starts import Start, find_starts
from replicator.control.reconcile.topic_selection import SelectedTopic, selected_topics
from replicator.errors import NotAuthorizedError, RefusedError
from replicator.identifiers import TopicPartition, checkpoints_topic, membership_group
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.kafka.admin.topics import require_answers
from replicator.kafka.logs.checkpoint_log import read_checkpoints
from replicator.mm2.configuration.import_map import MirroredFlow
from replicator.mm2.topics.adopt import ConnectorProgress, read_progress
from replicator.policy.copies.naming import carries_source, target_name
from replicator.policy.copies.selection import select_topics
from replicator.topology.plan import FlowPlan, PairPlan, Plan

CLIENT_ID = "replicator-adopt"
WATCH_SECONDS = 2.0
"""How long the ends of logs are watched for a MirrorMaker 2 that is in no group."""


@dataclass(frozen=True, slots=True)
class Survey:
    """One flow that can be taken over."""

    pair: PairPlan
    mirrored: MirroredFlow
    starts: tuple[Start, ...]

    def as_json(self) -> dict[str, object]:
        """The flow under the field names of the contract."""
        return {
            "flow": self.pair.id,
            "offsetsTopic": self.mirrored.offsets_topic,
            "partitions": [start.as_json() for start in self.starts],
        }


def matching_pairs(
    plan: Plan, mirrored: Sequence[MirroredFlow]
) -> tuple[tuple[PairPlan, MirroredFlow], ...]:
    """The pairs of the topology that MirrorMaker 2 copies.

    Raises:
        RefusedError: one of its flows is not in the topology, so it would just end.
    """
    pairs = {(str(pair.source.alias), str(pair.target.alias)): pair for pair in plan.pairs}
    for flow in mirrored:
        if (flow.source, flow.target) not in pairs:
            raise RefusedError(
                f"the topology has no flow '{flow.source}->{flow.target}', which MirrorMaker 2 copies",
                remedy="Add it, or switch it off in the properties file. Aliases must be those that "
                "import-mm2 gave.",
            )
    return tuple((pairs[flow.source, flow.target], flow) for flow in mirrored)


def survey(plan: Plan, pair: PairPlan, mirrored: MirroredFlow) -> Survey:
    """Looks at one flow.

    Raises:
        RefusedError: it must not be taken over now, with what to do.
        NotAuthorizedError: our user lacks a right on something that MirrorMaker 2 has to do with.
        ClusterError: a cluster does not answer.
    """
    with (
        ClusterAdmin(pair.source, client_id=CLIENT_ID) as source,
        ClusterAdmin(pair.target, client_id=CLIENT_ID) as target,
    ):
        _refuse_members(pair, mirrored, target)
        _refuse_own(plan, pair, target)
        aliases = [str(cluster.alias) for cluster in plan.clusters]
        topics = source.topic_partitions()
        wanted = selected_topics(pair, topics, aliases)
        _refuse_reverse_flows(plan, wanted)
        targets = target.topic_partitions()
        _refuse_hidden(target, {mirrored.offsets_topic} - targets.keys())
        progress = read_progress(
            pair.target, target, mirrored.offsets_topic, mirrored.source_name, client_id=CLIENT_ID
        )
        absent = {topic: 1 for topic, _ in progress.last_copied if topic not in topics}
        _refuse_hidden(source, [one.topic for one in selected_topics(pair, absent, aliases)])
        copied = {topic for topic, _ in progress.last_copied}
        _refuse_hidden(
            target,
            [one.target for one in wanted if one.topic in copied if one.target not in targets],
        )
        _refuse_other_names(pair, mirrored, wanted, targets, progress)
        _refuse_movement(pair, _watched(mirrored, wanted, targets), target)
        starts = find_starts(wanted, progress, source, target, targets)
    return Survey(pair, mirrored, starts)


def _refuse_members(pair: PairPlan, mirrored: MirroredFlow, target: ClusterAdmin) -> None:
    group = target.describe_group(mirrored.group)
    if group.active:
        raise RefusedError(
            f"MirrorMaker 2 still runs: its group '{mirrored.group}' is {group.state.lower()}, "
            f"members: {len(group.members)}",
            subject=str(pair.id),
            remedy="Stop it. A worker that was killed leaves its group after its session, 10 seconds "
            "by default; try again then.",
        )


def _refuse_own(plan: Plan, pair: PairPlan, target: ClusterAdmin) -> None:
    """Nothing of ours may have begun."""
    group = membership_group(plan.topology, pair.source.alias)
    if target.describe_group(group).active:
        raise RefusedError(
            "workers of the replicator run for this flow",
            subject=str(pair.id),
            remedy="Stop them; start them again when the progress has been taken over.",
        )
    name = checkpoints_topic(plan.topology, pair.source.alias)
    described = target.describe_topics([name]).get(name)
    if described is not None and own_checkpoints(plan, pair, described.partitions):
        raise RefusedError(
            "the replicator has copied in this flow already, so it has checkpoints of its own",
            subject=str(pair.id),
            remedy="They count from now on, and nothing has to be taken over. To start again, use "
            "another metadata.name.",
        )


def own_checkpoints(plan: Plan, pair: PairPlan, partitions: int) -> bool:
    """Whether any checkpoint of the pair is stored."""
    return bool(read_checkpoints(plan.topology, pair, client_id=CLIENT_ID, partitions=partitions))


def _refuse_reverse_flows(plan: Plan, wanted: Sequence[SelectedTopic]) -> None:
    """MirrorMaker 2's copies carry no hops: a flow back under one name would take them for new."""
    for one in wanted:
        back = reverse_flow(plan, one.flow, one.target)
        if back is not None:
            raise RefusedError(
                f"flow {back.id} would carry MirrorMaker 2's copies of '{one.topic}' back to "
                f"{one.flow.source}: they do not say where they came from",
                subject=str(one.flow.id),
                remedy="Take over one way first. When that runs, add the way back with "
                "startFrom: latest, so that only new records go there.",
            )


def reverse_flow(plan: Plan, flow: FlowPlan, name: str) -> FlowPlan | None:
    """The last of a row of flows that leads a target topic home under the same name, or None."""
    if carries_source(flow.policy.naming):
        return None
    aliases = [str(cluster.alias) for cluster in plan.clusters]
    reached, grew = {flow.target}, True
    while grew:
        grew = False
        for other in plan.flows:
            if other.source not in reached or other.target in reached:
                continue
            if carries_source(other.policy.naming) or other.policy.start_from.kind == "latest":
                continue
            if not select_topics(other.policy, [name], blocked=other.blocked, aliases=aliases):
                continue
            if other.target == flow.source:
                return other
            reached.add(other.target)
            grew = True
    return None


def _refuse_hidden(admin: ClusterAdmin, names: Iterable[str]) -> None:
    """A listing leaves out what our user may not describe; asked by name, the cluster says so.

    Taken for one that is gone, a topic would begin anew once the right is there.
    """
    described = admin.describe_each_topic(names)
    require_answers(described)
    for answer in described.values():
        if isinstance(answer, NotAuthorizedError):
            raise answer


def _refuse_other_names(
    pair: PairPlan,
    mirrored: MirroredFlow,
    wanted: Sequence[SelectedTopic],
    targets: Collection[str],
    progress: ConnectorProgress,
) -> None:
    """A copy that went on under another name would begin in the middle."""
    copied = {topic for topic, _ in progress.last_copied}
    for one in wanted:
        if one.topic not in copied:
            continue
        theirs = target_name(mirrored.naming, mirrored.source, one.topic)
        if one.target != theirs:
            raise RefusedError(
                f"MirrorMaker 2 copies '{one.topic}' to '{theirs}', the topology to '{one.target}'",
                subject=str(pair.id),
                remedy="Set naming as import-mm2 gave it, or leave the topic out of the link.",
            )
        if theirs not in targets:
            raise RefusedError(
                f"'{theirs}' does not exist on {mirrored.target}, though MirrorMaker 2 stored how far "
                f"it copied '{one.topic}'",
                subject=str(pair.id),
                remedy="What it held is gone. Leave the topic out of the link while taking over, and "
                "add it afterwards: then it is copied from its start.",
            )


def _watched(
    mirrored: MirroredFlow, wanted: Sequence[SelectedTopic], targets: Mapping[str, int]
) -> list[TopicPartition]:
    """Partitions on the target that nobody but MirrorMaker 2 writes to."""
    names = {mirrored.offsets_topic}
    # A topic whose name carries its source has no other writer; others may have one.
    names |= {one.target for one in wanted if carries_source(one.flow.policy.naming)}
    return [(name, number) for name in names for number in range(targets.get(name, 0))]


def _refuse_movement(pair: PairPlan, keys: Sequence[TopicPartition], target: ClusterAdmin) -> None:
    """A worker in no group (standalone, or just cut off) shows by what it writes."""
    before = target.offsets(keys, "latest", isolation="read_uncommitted")
    time.sleep(WATCH_SECONDS)  # what is written meanwhile is the proof: no event announces a writer
    after = target.offsets(keys, "latest", isolation="read_uncommitted")
    moved = sorted({key[0] for key in keys if before.get(key) != after.get(key)})
    if moved:
        raise RefusedError(
            f"'{moved[0]}' is still being written to, probably by MirrorMaker 2",
            subject=str(pair.id),
            remedy="Stop it, and try again.",
        )
