"""What to do about one wanted topic: the pure decision per topic.

Invariants: a lane never gets a partition that the target lacks; a target topic that already held
copies is never created again in silence; a refusal of one topic leaves all others alone.
"""

from dataclasses import dataclass, replace

from replicator.control.reconcile.actions import AlterConfigs, ClusterAction, CreateTopic, GrowTopic
from replicator.control.reconcile.cluster_view import TopicFacts
from replicator.control.reconcile.snapshot import PairSnapshot
from replicator.control.reconcile.topic_selection import SelectedTopic
from replicator.control.reconcile.topics.config_drift import config_findings
from replicator.control.records.pair_records import TopicRecord
from replicator.control.records.problem_part import problem_part
from replicator.policy.copies.topic_config import (
    MAX_MESSAGE_BYTES,
    config_changes,
    creation_configs,
    desired_replication_factor,
)
from replicator.problem import Problem

_KAFKA_DEFAULT_MAX_MESSAGE_BYTES = 1_048_588


@dataclass(frozen=True, slots=True)
class TopicDecision:
    """Actions on the target now, the record to have (None: not yet), and what is wrong."""

    actions: tuple[ClusterAction, ...] = ()
    record: TopicRecord | None = None
    problems: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()
    reason: str = ""


def decide_topic(
    wanted: SelectedTopic, source: TopicFacts, snapshot: PairSnapshot
) -> TopicDecision:
    """Compares one wanted topic with the target and with its record."""
    held = snapshot.control.topic(wanted.flow.source, wanted.flow.link, wanted.topic)
    target = snapshot.target.topics.get(wanted.target)
    if held is not None and held.activated and held.target != wanted.target:
        return _refused(
            replace(wanted, target=held.target), source, held, snapshot,
            target=None, problem=_renamed(wanted, held),
        )  # fmt: skip
    problem = wanted.problem or _other_writer(wanted, held, snapshot)
    if problem is not None:
        return _refused(wanted, source, held, snapshot, target=target, problem=problem)
    if target is None:
        return _missing(wanted, source, held, snapshot)
    return _present(wanted, source, held, target, snapshot)


def _missing(
    wanted: SelectedTopic, source: TopicFacts, held: TopicRecord | None, snapshot: PairSnapshot
) -> TopicDecision:
    if wanted.target in snapshot.target.sizes or wanted.target in snapshot.just_created:
        # It is there, the answer about it is not yet.
        return TopicDecision(record=_not_yet(wanted, source, held, snapshot))
    if held is not None and held.activated and held.target == wanted.target:
        problem = Problem(
            "TARGET_REFUSES", wanted.topic,
            f"'{wanted.target}' was deleted on {wanted.flow.target}; it is not created again by itself",
            f"Create '{wanted.target}' with {source.partitions} partitions to have it copied again, "
            f"or exclude the topic.",
        )  # fmt: skip
        return _refused(wanted, source, held, snapshot, target=None, problem=problem)
    policy = wanted.flow.policy.sync_topics
    create = CreateTopic(
        cluster=wanted.flow.target,
        topic=wanted.target,
        source_topic=wanted.topic,
        partitions=source.partitions,
        replication_factor=desired_replication_factor(
            policy.replication_factor,
            source_replicas=source.replication_factor,
            target_brokers=snapshot.target_brokers,
        ),
        configs=tuple(creation_configs(source.configs or {}, policy).items()),
        reason=f"link {wanted.flow.link} copies {wanted.flow.source}'s '{wanted.topic}'",
    )
    refusal = snapshot.refusals.get(create.identity)
    if refusal is not None:
        return _refused(
            wanted,
            source,
            held,
            snapshot,
            target=None,
            problem=replace(refusal, subject=wanted.topic),
        )
    return TopicDecision(actions=(create,), record=_not_yet(wanted, source, held, snapshot))


def _present(
    wanted: SelectedTopic,
    source: TopicFacts,
    held: TopicRecord | None,
    target: TopicFacts,
    snapshot: PairSnapshot,
) -> TopicDecision:
    actions: list[ClusterAction] = []
    problems: list[Problem] = []
    warnings: tuple[Problem, ...] = ()
    growing = False
    if target.partitions < source.partitions:
        grow = GrowTopic(
            wanted.flow.target, wanted.target, wanted.topic, target.partitions, source.partitions,
            f"'{wanted.topic}' on {wanted.flow.source} has {source.partitions} partitions",
        )  # fmt: skip
        if not wanted.flow.policy.sync_topics.partitions:
            problems.append(_fewer(wanted, source, target))
        elif grow.identity in snapshot.refusals:
            problems.append(replace(snapshot.refusals[grow.identity], subject=wanted.topic))
        else:
            actions.append(grow)
            growing = True
    if source.configs is not None and target.configs is not None:
        changes = config_changes(source.configs, target.configs, wanted.flow.policy.sync_topics)
        pending: frozenset[str] = frozenset()
        if changes:
            names = ", ".join(change.name for change in changes)
            alter = AlterConfigs(
                wanted.flow.target, wanted.target, wanted.topic, changes,
                f"settings differ: {names}",
            )  # fmt: skip
            refusal = snapshot.refusals.get(alter.identity)
            if refusal is not None:
                problems.append(
                    replace(
                        refusal,
                        code="CONFIG_DRIFT",
                        subject=wanted.topic,
                        detail=f"settings differ ({names}) and stay so: {refusal.detail}",
                    )
                )
            else:
                actions.append(alter)
                pending = frozenset(change.name for change in changes)
        drift, warnings = config_findings(wanted, source.configs, target.configs, pending=pending)
        problems.extend(drift)
    elif held is not None:
        # Settings were not read this time: what was found about them last time still stands.
        problems.extend(
            Problem(item.code, item.subject, item.detail, item.remedy)
            for item in held.problems
            if item.code == "CONFIG_DRIFT"
        )
    activated = held is not None and held.activated
    if not activated and growing:
        return TopicDecision(tuple(actions), held, tuple(problems), warnings)
    state_ok = activated or target.partitions >= source.partitions
    record = _record(
        wanted, source, held, snapshot,
        state="active" if state_ok else "refused",
        target_partitions=target.partitions,
        max_message_bytes=_limit(target, held),
        problems=problems,
    )  # fmt: skip
    return TopicDecision(
        tuple(actions), record, tuple(problems), warnings, _reason(wanted, held, record)
    )


def _reason(wanted: SelectedTopic, held: TopicRecord | None, record: TopicRecord) -> str:
    if record.state == "refused":
        return f"'{wanted.topic}' cannot be copied now"
    if held is None:
        return f"'{wanted.topic}' is copied to '{wanted.target}'"
    if held.topic_id != record.topic_id:
        return f"'{wanted.topic}' was deleted and created again on {wanted.flow.source}"
    if held.working_partitions != record.working_partitions:
        return (
            f"'{wanted.topic}' goes from {held.working_partitions} "
            f"to {record.working_partitions} partitions"
        )
    return f"facts about '{wanted.topic}' changed"


def _other_writer(
    wanted: SelectedTopic, held: TopicRecord | None, snapshot: PairSnapshot
) -> Problem | None:
    """Another source's flow that writes the same target topic under another link."""
    if held is not None and held.state == "active" and held.target == wanted.target:
        return None  # it was first
    for record in snapshot.control.topics_into(wanted.target):
        if (
            record.state == "active"
            and record.source != wanted.flow.source
            and record.link != wanted.flow.link
        ):
            return Problem(
                "TARGET_REFUSES", wanted.topic,
                f"'{wanted.target}' on {wanted.flow.target} is already written from "
                f"{record.source} by link '{record.link}'",
                "Give one of the links another naming, or exclude the topic.",
            )  # fmt: skip
    return None


def _renamed(wanted: SelectedTopic, held: TopicRecord) -> Problem:
    return Problem(
        "TARGET_REFUSES", wanted.topic,
        f"it is copied to '{held.target}'; under its new name '{wanted.target}' it would begin in "
        f"the middle",
        "Set naming back. A whole copy under a new name needs another metadata.name.",
    )  # fmt: skip


def _fewer(wanted: SelectedTopic, source: TopicFacts, target: TopicFacts) -> Problem:
    return Problem(
        "TARGET_FEWER_PARTITIONS", wanted.topic,
        f"'{wanted.target}' on {wanted.flow.target} has {target.partitions} partitions, "
        f"its source has {source.partitions}",
        f"Grow '{wanted.target}' to {source.partitions} partitions, or set "
        f"sync.topics.partitions: true.",
    )  # fmt: skip


def _refused(
    wanted: SelectedTopic,
    source: TopicFacts,
    held: TopicRecord | None,
    snapshot: PairSnapshot,
    *,
    target: TopicFacts | None,
    problem: Problem,
) -> TopicDecision:
    record = _record(
        wanted, source, held, snapshot,
        state="refused",
        target_partitions=target.partitions if target is not None else 0,
        max_message_bytes=_limit(target, held),
        problems=[problem],
    )  # fmt: skip
    return TopicDecision(record=record, problems=(problem,), reason=problem.detail)


def _record(
    wanted: SelectedTopic,
    source: TopicFacts,
    held: TopicRecord | None,
    snapshot: PairSnapshot,
    *,
    state: str,
    target_partitions: int,
    max_message_bytes: int,
    problems: list[Problem],
) -> TopicRecord:
    same_state = held is not None and held.state == state
    fields = {
        "source": wanted.flow.source,
        "link": wanted.flow.link,
        "topic": wanted.topic,
        "target": wanted.target,
        "topic_id": source.topic_id,
        "partitions": source.partitions,
        "target_partitions": target_partitions,
        "max_message_bytes": max_message_bytes,
        "state": state,
        "problems": tuple(problem_part(item) for item in problems),
        "priority": wanted.priority,
        "activated": state == "active" or (held is not None and held.activated),
        "at_ms": held.at_ms if held is not None and same_state else snapshot.at_ms,
        "first_partitions": _first_partitions(wanted, source, held, snapshot),
    }
    kept = dict(held.model_extra or {}) if held is not None else {}
    return TopicRecord.model_validate({**kept, **fields})


def _first_partitions(
    wanted: SelectedTopic, source: TopicFacts, held: TopicRecord | None, snapshot: PairSnapshot
) -> int:
    """How many partitions were there when the flow was first applied: none of a topic that came later."""
    if held is not None:
        known = held.partitions if held.first_partitions is None else held.first_partitions
        return known if held.topic_id == source.topic_id else 0
    layout = snapshot.control.layout(wanted.flow.source)
    begun = layout is not None and layout.block(wanted.flow.link) is not None
    return 0 if begun else source.partitions


def _not_yet(
    wanted: SelectedTopic, source: TopicFacts, held: TopicRecord | None, snapshot: PairSnapshot
) -> TopicRecord | None:
    """The record while the target topic is being made: it says that the topic was there from the first."""
    if held is not None or wanted.flow.policy.start_from.kind == "earliest":
        return held
    return _record(
        wanted, source, held, snapshot,
        state="refused",
        target_partitions=0,
        max_message_bytes=_limit(None, None),
        problems=[],
    )  # fmt: skip


def _limit(target: TopicFacts | None, held: TopicRecord | None) -> int:
    if target is not None and target.configs is not None:
        setting = target.configs.get(MAX_MESSAGE_BYTES)
        if setting is not None and setting.value is not None and setting.value.isdigit():
            return int(setting.value)
    return held.max_message_bytes if held is not None else _KAFKA_DEFAULT_MAX_MESSAGE_BYTES
