"""Which copies connect a topic of one cluster with a topic of another. Pure.

A replicated partition is one source partition and its copy on one target. A position on cluster A means
something on cluster B through every origin whose records stand in both logs: A's own through the
copy A to B, B's own through the copy B to A, and a third cluster's through its copies on both.
Under one name for all (same-name active-active) that is several replicated partitions at once.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from replicator.policy.copies.engines import flow_engine
from replicator.policy.copies.naming import source_name, target_name
from replicator.policy.copies.provenance import Arrivals
from replicator.policy.copies.selection import select_topics
from replicator.topology.plan import ClusterPlan, FlowPlan, Plan


@dataclass(frozen=True, slots=True)
class ReplicatedPartition:
    """One source partition and its copy.

    ``assumed`` ones are not in the plan but may have been: the other direction of a link that can
    change its direction. They count only where a checkpoint shows that they were used.
    ``whole_batches`` ones are copied in whole batches, whose copies name no place. ``counted`` ones are copied
    exactly once: whole batches made of them, now or before, are told by counting between known pairs.
    What ``returns`` to its source is not copied on: records that passed one of the ``blocked`` aliases, as
    ``arrivals`` on the source tell.
    """

    source: ClusterPlan
    target: ClusterPlan
    topic: str
    target_topic: str
    partition: int
    link: str = ""
    marked: bool = True
    from_earliest: bool = True
    cyclic: bool = False
    assumed: bool = False
    counted: bool = False
    whole_batches: bool = False
    returns: bool = False
    blocked: tuple[str, ...] = ()
    arrivals: Arrivals = Arrivals()  # noqa: RUF009  frozen, so one instance is safe

    @property
    def flow(self) -> str:
        """The flow as people write it."""
        return f"{self.source.alias}->{self.target.alias}"


@dataclass(frozen=True, slots=True)
class Component:
    """How records of one origin get a position on B from a position on A.

    ``back`` leads from A's log to the origin (None: the origin is A), ``onward`` from the origin to
    B's log (None: the origin is B).
    """

    origin: str
    back: ReplicatedPartition | None
    onward: ReplicatedPartition | None


@dataclass(frozen=True, slots=True)
class TranslationPath:
    """A partition on the source, the target's topic with the same records, and the copies between."""

    source: str
    target: str
    topic: str
    target_topic: str
    partition: int
    components: tuple[Component, ...]

    @property
    def links(self) -> frozenset[str]:
        """The links whose copies connect the two."""
        return frozenset(copied.link for copied in self.replicated)

    @property
    def replicated(self) -> tuple[ReplicatedPartition, ...]:
        """Every copy that takes part."""
        return tuple(
            copied
            for part in self.components
            for copied in (part.back, part.onward)
            if copied is not None
        )


def translation_paths(
    plan: Plan, source: str, target: str, topic: str, partition: int
) -> list[TranslationPath]:
    """The topics on the target that hold records of a topic on the source; usually one."""
    paths: dict[str, list[Component]] = {}
    for flow, assumed in _flows(plan, source, target):
        if _takes(plan, flow, topic):
            copied = _replicated(plan, flow, topic, partition, assumed=assumed)
            _add(paths, copied.target_topic, Component(source, None, copied))
    for flow, assumed in _flows(plan, target, source):
        original = source_name(flow.policy.naming, target, topic)
        if original is not None and _takes(plan, flow, original):
            copied = _replicated(plan, flow, original, partition, assumed=assumed)
            _add(paths, original, Component(target, copied, None))
    for name, component in _third_clusters(plan, source, target, topic, partition):
        _add(paths, name, component)
    return [
        TranslationPath(source, target, topic, name, partition, tuple(parts))
        for name, parts in paths.items()
    ]


def _third_clusters(
    plan: Plan, source: str, target: str, topic: str, partition: int
) -> Iterator[tuple[str, Component]]:
    """Origins that copy the same topic to both clusters."""
    for flow in plan.flows:
        if flow.target != source or flow.source == target:
            continue
        original = source_name(flow.policy.naming, flow.source, topic)
        if original is None or not _takes(plan, flow, original):
            continue
        for onward in plan.flows:
            if (onward.source, onward.target) != (flow.source, target):
                continue
            if _takes(plan, onward, original):
                back = _replicated(plan, flow, original, partition)
                over = _replicated(plan, onward, original, partition)
                yield over.target_topic, Component(flow.source, back, over)


def _add(paths: dict[str, list[Component]], name: str, component: Component) -> None:
    parts = paths.setdefault(name, [])
    if all(part.origin != component.origin for part in parts):
        parts.append(component)


def _flows(plan: Plan, source: str, target: str) -> list[tuple[FlowPlan, bool]]:
    """The flows over an ordered pair; links that may turn around count for their other direction."""
    found = [(flow, False) for flow in plan.flows if (flow.source, flow.target) == (source, target)]
    for link in plan.links:
        if link.shape != "active-passive":
            continue
        for flow in link.flows:
            if (flow.source, flow.target) != (target, source):
                continue
            if flow.policy.naming.kind == "identity":
                reversed_path = FlowPlan(
                    link=flow.link,
                    source=flow.target,
                    target=flow.source,
                    policy=flow.policy,
                    blocked=(flow.source,),
                )
                found.append((reversed_path, True))
    return found


def _takes(plan: Plan, flow: FlowPlan, topic: str) -> bool:
    aliases = [cluster.alias for cluster in plan.clusters]
    return bool(select_topics(flow.policy, [topic], blocked=flow.blocked, aliases=aliases))


def _replicated(
    plan: Plan, flow: FlowPlan, topic: str, partition: int, *, assumed: bool = False
) -> ReplicatedPartition:
    return ReplicatedPartition(
        source=plan.cluster(flow.source),
        target=plan.cluster(flow.target),
        topic=topic,
        target_topic=target_name(flow.policy.naming, flow.source, topic),
        partition=partition,
        link=flow.link,
        marked=flow.policy.provenance == "full",
        from_earliest=flow.policy.start_from.kind == "earliest",
        cyclic=assumed or plan.in_cycle(flow),
        assumed=assumed,
        counted=flow.policy.delivery == "exactly-once",
        whole_batches=flow_engine(flow.policy).engine == "batches",
        returns=assumed or plan.may_come_back(flow),
        blocked=tuple(flow.blocked),
        arrivals=plan.arrivals(flow.source),
    )


def reversed_path(plan: Plan, path: TranslationPath) -> TranslationPath | None:
    """The way back: from the topic on the target to the one on the source."""
    paths = translation_paths(plan, path.target, path.source, path.target_topic, path.partition)
    return next((back for back in paths if back.target_topic == path.topic), None)
