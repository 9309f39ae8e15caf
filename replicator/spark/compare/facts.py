"""The facts of a comparison, read from both clusters and the control topics of the target.

The order matters: checkpoints first, the ends of the logs after them, checkpoints once more. So what
a checkpoint accounts for lies below the ends, and it is known whether the checkpoint moved meanwhile.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from replicator.batches.registry.producer_registry import ProducerRegistry
from replicator.control.operator.quarantine import Quarantined, read_quarantine
from replicator.control.records.pair_records import GapTaken, TopicRecord
from replicator.control.store.read import read_control
from replicator.control.store.state import ControlState
from replicator.errors import InputError, NotFoundError
from replicator.formats.producer_registry import RegisteredProducer
from replicator.identifiers import TopicPartition, is_canary_topic
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.offsets.index.index import index_pairs
from replicator.offsets.index.stored import CheckpointsView, StoredPartitions
from replicator.policy.copies.naming import carries_source
from replicator.policy.copies.provenance import find_hops, parse_hops
from replicator.policy.copies.topic_config import ConfigValue
from replicator.spark.base.ranges import Range
from replicator.spark.compare.cases import CaseFacts, Rules, Side
from replicator.spark.source.scan import RangeScanner
from replicator.topology.plan import ClusterPlan, FlowPlan, PairPlan, Plan

CLIENT_ID = "replicator-verify"
TIMEOUT_SECONDS = 30.0
_LOOKED_AT = 20_000
"""How many records of the target are read for the oldest copy."""
_RECREATED = "deleted and created again"
_Placed = TypeVar("_Placed", GapTaken, Quarantined)


@dataclass(frozen=True, slots=True)
class _Bounds:
    starts: Mapping[TopicPartition, int]
    ends: Mapping[TopicPartition, int]
    configs: Mapping[str, Mapping[str, ConfigValue]]
    topic_ids: Mapping[str, str]

    def value(self, topic: str, setting: str) -> str:
        """A setting of a topic; empty where the cluster does not name it."""
        found = self.configs.get(topic, {}).get(setting)
        return "" if found is None or found.value is None else found.value


@dataclass(frozen=True, slots=True)
class _Read:
    """Everything that was read from both clusters."""

    plan: Plan
    pair: PairPlan
    before: StoredPartitions
    after: StoredPartitions
    source: _Bounds
    target: _Bounds
    kept_from: Mapping[TopicPartition, int]
    expired_before_ms: Mapping[str, int]
    timed: bool
    gaps: Mapping[TopicPartition, Sequence[GapTaken]]
    quarantined: Mapping[TopicPartition, Sequence[Quarantined]]
    registered: Mapping[int, RegisteredProducer]
    whole_batches: frozenset[str]
    """The links that ever copied whole batches to the target: copies without a header may stand there."""


def collect_facts(
    plan: Plan, pair: PairPlan, *, topics: frozenset[str], from_ms: int | None, now_ms: int
) -> list[CaseFacts]:
    """Facts of every replicated partition of a pair; of these source topics only, when any are given.

    Retention is judged at ``now_ms``.

    Raises:
        InputError: the pair was never applied, or it does not replicate a topic that was named.
        ReplicatorError: a cluster cannot be read.
    """
    control = _control(plan, pair)
    records = _replicated(control, pair, topics)
    quarantined = _by_partition(read_quarantine(plan, pair))
    gaps = _by_partition(control.gaps_taken(pair.source.alias))
    with (
        ClusterAdmin(pair.source, client_id=CLIENT_ID, timeout_seconds=TIMEOUT_SECONDS) as source,
        ClusterAdmin(pair.target, client_id=CLIENT_ID, timeout_seconds=TIMEOUT_SECONDS) as target,
    ):
        before = _stored(plan, pair, target)
        source_bounds = _bounds(
            source, [(each.topic, each.working_partitions) for each in records], from_ms
        )
        target_bounds = _bounds(
            target, [(each.target, each.working_partitions) for each in records], from_ms
        )
        after = _stored(plan, pair, target)
        expired = {
            each.topic: limit
            for each in records
            if (limit := _expired_before_ms(target_bounds, each.target, now_ms)) is not None
        }
        kept_from = _kept_from(source, expired, source_bounds)
    read = _Read(plan, pair, before, after, source_bounds, target_bounds, kept_from, expired,
        from_ms is not None, gaps, quarantined, _came_to_source(plan, pair, control),
        _whole_batches(plan, pair))  # fmt: skip
    found = [
        _facts(read, record, partition)
        for record in records
        for partition in range(record.working_partitions)
    ]
    return [_with_oldest_copy(facts, pair) for facts in found]


def require_replicated(plan: Plan, pair: PairPlan, topics: frozenset[str]) -> None:
    """Checks the names of topics before Spark starts.

    Raises:
        InputError: the pair was never applied, or it does not replicate a topic that was named.
        ReplicatorError: the target cannot be read.
    """
    _replicated(_control(plan, pair), pair, topics)


def _control(plan: Plan, pair: PairPlan) -> ControlState:
    try:
        return read_control(plan.topology, pair.target, client_id=CLIENT_ID)
    except NotFoundError as error:
        raise InputError(
            f"flow {pair.id} was never applied, so there is nothing to compare",
            remedy="Run `replicator apply` and a worker first.",
        ) from error


def _replicated(control: ControlState, pair: PairPlan, topics: frozenset[str]) -> list[TopicRecord]:
    records = [
        record
        for record in control.topics(pair.source.alias)
        if record.state == "active" and not is_canary_topic(record.topic)
    ]
    missing = topics - {record.topic for record in records}
    if missing:
        raise InputError(
            f"flow {pair.id} does not replicate {', '.join(sorted(missing))}",
            remedy="`replicator topics` lists what is replicated.",
        )
    return [record for record in records if not topics or record.topic in topics]


def _stored(plan: Plan, pair: PairPlan, admin: ClusterAdmin) -> StoredPartitions:
    view = CheckpointsView(
        plan.topology, pair.source.alias, pair.target, admin=admin, client_id=CLIENT_ID
    )
    try:
        return view.refresh()
    finally:
        view.close()


def _bounds(admin: ClusterAdmin, topics: Iterable[tuple[str, int]], from_ms: int | None) -> _Bounds:
    """Ends and settings; with a time, the logs begin at the first record that is not older."""
    keys = [(topic, number) for topic, partitions in topics for number in range(partitions)]
    # None may be left out in silence: it would look compared.
    starts, ends = admin.every_offset(keys, "earliest"), admin.every_offset(keys, "latest")
    if from_ms is not None:
        timed = admin.every_offset(keys, from_ms)
        starts = {
            key: ends[key] if timed[key] < 0 else max(start, timed[key])
            for key, start in starts.items()
        }
    names = {topic for topic, _ in keys}
    ids = {name: each.topic_id for name, each in admin.describe_topics(names).items()}
    return _Bounds(starts, ends, admin.topic_configs(names), ids)


def _expired_before_ms(target: _Bounds, topic: str, now_ms: int) -> int | None:
    """Retention may have deleted records older than this; None where it goes by size too."""
    size, age = target.value(topic, "retention.bytes"), target.value(topic, "retention.ms")
    if size not in {"", "-1"}:
        return None
    return 0 if age in {"", "-1"} else max(0, now_ms - int(age))


def _kept_from(
    source: ClusterAdmin, expired_before_ms: Mapping[str, int], bounds: _Bounds
) -> dict[TopicPartition, int]:
    """The first source offsets that are too young for the target's retention."""
    keys_at: dict[int, list[TopicPartition]] = defaultdict(list)
    for key in bounds.starts:
        if key[0] in expired_before_ms:
            keys_at[expired_before_ms[key[0]]].append(key)
    return {
        key: bounds.ends[key] if offset < 0 else offset
        for at_ms, keys in keys_at.items()
        for key, offset in source.every_offset(keys, at_ms).items()
    }


def _facts(read: _Read, record: TopicRecord, partition: int) -> CaseFacts:
    flow = _flow(read.pair, record)
    stored = read.before.of(record.topic, partition)
    quarantined = read.quarantined.get((record.topic, partition), ())
    gaps = read.gaps.get((record.topic, partition), ())
    return CaseFacts(
        topic=record.topic,
        target_topic=record.target,
        partition=partition,
        source=_side(read.source, record.topic, partition),
        target=_side(read.target, record.target, partition),
        rules=_rules(read, flow),
        copied_to=stored.copied_to,
        kept_from=read.kept_from.get((record.topic, partition)),
        expired_before_ms=read.expired_before_ms.get(record.topic),
        start_is_log=not read.timed,
        pairs=tuple(index_pairs(stored.entries.values())),
        noted=tuple(
            sorted({(entry.pair.source, entry.at_ms) for entry in stored.entries.values()})
        ),
        quarantined=frozenset(each.offset for each in quarantined if each.outcome != "replayed"),
        replayed=frozenset(each.offset for each in quarantined if each.outcome == "replayed"),
        gaps=tuple(
            (gap.lost.from_offset, gap.lost.to_offset) for gap in gaps
            if gap.lost.from_offset is not None and gap.lost.to_offset is not None
        ),
        from_earliest=flow.policy.start_from.kind == "earliest" and not stored.adopted,
        recreated=any(_RECREATED in gap.detail for gap in gaps),
        foreign_allowed=foreign_records_allowed(read.plan, flow),
        quiet=stored.copied_to == read.after.of(record.topic, partition).copied_to,
    )  # fmt: skip


def _flow(pair: PairPlan, record: TopicRecord) -> FlowPlan:
    for flow in pair.flows:
        if flow.link == record.link:
            return flow
    raise InputError(
        f"topic {record.topic} is replicated by link '{record.link}', which the topology file no "
        "longer has",
        remedy="Name the other topics with --topic, or use the file that the workers use.",
    )


def _came_to_source(
    plan: Plan, pair: PairPlan, control: ControlState
) -> Mapping[int, RegisteredProducer]:
    """Who writes whole batches to the source: lanes of this topology, and of others that copy the other way."""
    names = list(control.opposite_topologies(pair.source.alias))
    if any(plan.may_come_back(flow) for flow in pair.flows):
        names.append(plan.topology)
    found: dict[int, RegisteredProducer] = {}
    for name in names:
        found |= _registered(name, pair.source)
    return found


def _whole_batches(plan: Plan, pair: PairPlan) -> frozenset[str]:
    registered = _registered(plan.topology, pair.target).values()
    return frozenset(each.link for each in registered if each.source == pair.source.alias)


def _registered(topology: str, cluster: ClusterPlan) -> Mapping[int, RegisteredProducer]:
    registry = ProducerRegistry(cluster, topology, client_id=CLIENT_ID)
    try:
        registry.read()
        return dict(registry.registered)
    finally:
        registry.close()


def _rules(read: _Read, flow: FlowPlan) -> Rules:
    # Whatever the file says now: in a log that both engines wrote some copies name no place.
    full = flow.policy.provenance == "full" and flow.link not in read.whole_batches
    return Rules(
        source=flow.source,
        target=flow.target,
        provenance="full" if full else "path",
        blocked=tuple(flow.blocked),
        arrivals=read.plan.arrivals(flow.source),
        filters=flow.policy.filters,
        transforms=flow.policy.transforms,
        producers=tuple(
            number for number, each in read.registered.items() if each.source in flow.blocked
        ),
    )


def foreign_records_allowed(plan: Plan, flow: FlowPlan) -> bool:
    """Whether records that this flow did not write may stand in its target topic.

    A topic whose name carries the source belongs to this flow alone, and so does a copy on a passive
    side. Where all clusters use one name, producers on the target and other flows write to it too, and
    so did producers of a side that was active before the link's roles changed.
    """
    if carries_source(flow.policy.naming):
        return False
    if flow.role_version[0] > 0:
        return True
    link = next(each for each in plan.links if each.name == flow.link)
    if link.shape == "active-active":
        return True
    return any(
        (other.target == flow.target and other.source != flow.source) or other.source == flow.target
        for other in link.flows
    )


def _side(bounds: _Bounds, topic: str, partition: int) -> Side:
    start, end = bounds.starts[topic, partition], bounds.ends[topic, partition]
    return Side(
        start=start,
        end=max(start, end),
        compacted="compact" in bounds.value(topic, "cleanup.policy"),
        topic_id=bounds.topic_ids.get(topic, ""),
        appends_time=bounds.value(topic, "message.timestamp.type") == "LogAppendTime",
    )


def _by_partition(found: Iterable[_Placed]) -> dict[TopicPartition, list[_Placed]]:
    """Grouped once: there may be thousands of partitions and many thousands of records."""
    placed: dict[TopicPartition, list[_Placed]] = defaultdict(list)
    for each in found:
        placed[each.topic, each.partition].append(each)
    return placed


def _with_oldest_copy(facts: CaseFacts, pair: PairPlan) -> CaseFacts:
    """Where either log does not begin at 0, finds the origin of the oldest copy."""
    if not (facts.source.start or facts.target.start) or facts.rules.provenance != "full":
        return facts
    end = min(facts.target.end, facts.target.start + _LOOKED_AT)
    wanted = Range(facts.target_topic, facts.partition, facts.target.start, end)
    with RangeScanner(pair.target, client_id=CLIENT_ID) as scanner:
        for scanned in scanner.scan(wanted):
            for headers in scanned.headers:
                hops = parse_hops(find_hops(headers).value)
                if hops and (hops[-1].alias, hops[-1].topic, hops[-1].partition) == (
                    facts.rules.source, facts.topic, facts.partition,
                ):  # fmt: skip
                    return replace(facts, oldest_copy=hops[-1].offset)
    return facts
