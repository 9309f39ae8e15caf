"""Reading both sides of every pair for ``status``; clusters that do not answer are said to be so."""

import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from replicator.clock import Clock, SystemClock
from replicator.control.roles.read import RolesRead, read_roles
from replicator.control.status.facts import GroupMember, PairFacts
from replicator.control.status.report import status_report
from replicator.control.store.read import read_control
from replicator.control.store.state import ControlState
from replicator.errors import NotFoundError, ReplicatorError
from replicator.formats.checkpoint import Checkpoint
from replicator.identifiers import (
    JsonObject,
    TopicPartition,
    checkpoints_topic,
    control_topic,
    membership_group,
    worker_client_id,
)
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.kafka.clients.client import ClientPartition, open_consumer
from replicator.kafka.clients.errors import kafka_errors
from replicator.kafka.clients.settings import consumer_config
from replicator.kafka.logs.checkpoint_log import read_checkpoints
from replicator.problem import Problem, problem_of
from replicator.topology.plan import ClusterPlan, PairPlan, Plan

if TYPE_CHECKING:
    from replicator.wire.requests.open_transactions import OpenTransaction

CLIENT_ID = "replicator-status"
CLUSTER_SECONDS = 5.0
"""How long a cluster may take to answer before the rest is shown without it."""
PEEK_SECONDS = 1.0
PEEKED_PARTITIONS = 500


def collect_status(
    plan: Plan,
    *,
    flow: str | None = None,
    clock: Clock | None = None,
    followed: Mapping[str, ControlState] | None = None,
) -> JsonObject:
    """The object of ``status -o json``, read now. Blocking; never raises for a silent cluster.

    Args:
        plan: the topology.
        flow: only this flow (``source->target``), when given.
        clock: the machine's by default.
        followed: control topics that the process follows, by cluster: they are not read again.
    """
    read = read_roles(plan, client_id=CLIENT_ID, followed=followed)
    oriented = read.oriented()
    read = replace(read, states={**(followed or {}), **read.states})
    facts = collect_facts(oriented, flow=flow, clock=clock or SystemClock(), read=read)
    now_ms = round((clock or SystemClock()).now() * 1000)
    return status_report(
        oriented, facts, now_ms=now_ms, flow=flow, roles=read.roles(), states=read.states
    )


def collect_facts(
    plan: Plan,
    *,
    flow: str | None,
    clock: Clock,
    read: RolesRead | None = None,
) -> dict[str, PairFacts]:
    """Reads every pair that is asked for, all at the same time; by ``source->target``.

    ``read`` are control topics that were read a moment ago: a cluster that was silent then is not
    waited for once more.
    """
    known = read.states if read is not None else {}
    silent = read.silent if read is not None else {}
    pairs = [pair for pair in plan.pairs if flow is None or pair.id == flow]
    clusters = {cluster.alias: cluster for pair in pairs for cluster in (pair.source, pair.target)}
    if not pairs:
        return {}
    with ThreadPoolExecutor(max(len(clusters), len(pairs)), thread_name_prefix="status") as pool:
        probes = pool.map(lambda one: _probe(one, silent.get(str(one.alias))), clusters.values())
        sides = dict(zip(clusters, probes, strict=True))
        try:
            answers = pool.map(
                lambda pair: _read(
                    plan,
                    pair,
                    sides[pair.source.alias],
                    sides[pair.target.alias],
                    clock=clock,
                    known=known.get(pair.target.alias),
                ),
                pairs,
            )
            return {pair.id: facts for pair, facts in zip(pairs, answers, strict=True)}
        finally:
            for side in sides.values():
                side.admin.close()


@dataclass(frozen=True, slots=True)
class _Side:
    """One cluster with its topics, or why it could not be read."""

    admin: ClusterAdmin
    topics: Mapping[str, int]
    problem: Problem | None


def _probe(cluster: ClusterPlan, silent: ReplicatorError | None) -> _Side:
    admin = ClusterAdmin(cluster, client_id=CLIENT_ID, timeout_seconds=CLUSTER_SECONDS)
    if silent is not None:
        return _Side(admin, {}, problem_of(silent, subject=f"cluster:{cluster.alias}"))
    try:
        return _Side(admin, admin.topic_partitions(), None)
    except ReplicatorError as error:
        return _Side(admin, {}, problem_of(error, subject=f"cluster:{cluster.alias}"))


def _read(
    plan: Plan,
    pair: PairPlan,
    source: _Side,
    target: _Side,
    *,
    clock: Clock,
    known: ControlState | None,
) -> PairFacts:
    now_ms = round(clock.now() * 1000)
    name = checkpoints_topic(plan.topology, pair.source.alias)
    if target.problem is not None or control_topic(plan.topology) not in target.topics:
        return PairFacts(
            now_ms, applied=False,
            source_problem=source.problem, target_problem=target.problem,
        )  # fmt: skip
    try:
        control = known or read_control(
            plan.topology, pair.target, client_id=CLIENT_ID, timeout_seconds=CLUSTER_SECONDS
        )
        members = _members(plan, pair, target.admin)
        checkpoints = read_checkpoints(
            plan.topology, pair, client_id=CLIENT_ID, partitions=target.topics.get(name, 0)
        )
        copied = _copied(control, pair)
        target_ends = target.admin.known_offsets(
            {(one, number) for _, one, number in copied if one in target.topics}, "latest"
        )
    except ReplicatorError as error:
        problem = problem_of(error, subject=f"cluster:{pair.target.alias}")
        return PairFacts(now_ms, source_problem=source.problem, target_problem=problem)
    starts: dict[TopicPartition, int] = {}
    ends: dict[TopicPartition, int] = {}
    highs: dict[TopicPartition, int] = {}
    errors: dict[TopicPartition, ReplicatorError] = {}
    held: dict[TopicPartition, OpenTransaction] = {}
    waiting: dict[TopicPartition, int] = {}
    source_problem = source.problem
    if source_problem is None:
        try:
            keys = {
                (topic, number)
                for topic, _, number in copied
                if number < source.topics.get(topic, 0)
            }
            starts = source.admin.known_offsets(keys, "earliest")
            answers = source.admin.offsets(keys, "latest", "read_uncommitted")
            highs = {key: end for key, end in answers.items() if isinstance(end, int)}
            errors = {
                key: error
                for key, error in answers.items()
                if isinstance(error, ReplicatorError) and not isinstance(error, NotFoundError)
            } | _hidden(source, copied)
            ends = source.admin.known_offsets(keys, "latest")
            waiting = _oldest_waiting(pair.source, checkpoints, starts, ends)
            held = _open_transactions(pair.source, highs, ends)
        except ReplicatorError as error:
            source_problem = problem_of(error, subject=f"cluster:{pair.source.alias}")
    return PairFacts(
        now_ms=round(clock.now() * 1000),
        control=control,
        checkpoints=checkpoints,
        source_starts=starts,
        source_ends=ends,
        source_highs=highs,
        source_errors=errors,
        open_transactions=held,
        target_ends=target_ends,
        oldest_waiting_ms=waiting,
        members=members,
        source_problem=source_problem,
    )


def _hidden(
    source: _Side, copied: set[tuple[str, str, int]]
) -> dict[TopicPartition, ReplicatorError]:
    """Why partitions are not listed though they are on record: a listing leaves out what our user may not see."""
    absent = {topic for topic, _, _ in copied} - source.topics.keys()
    answers = source.admin.describe_each_topic(sorted(absent)) if absent else {}
    return {
        (topic, number): answer
        for topic, _, number in copied
        if isinstance(answer := answers.get(topic), ReplicatorError)
        and not isinstance(answer, NotFoundError)
    }


def _copied(control: ControlState, pair: PairPlan) -> set[tuple[str, str, int]]:
    """Source topic, target topic and partition of everything on record."""
    return {
        (record.topic, record.target, number)
        for record in control.topics(pair.source.alias)
        if record.state != "gone"
        for number in range(record.partitions)
    }


def _members(plan: Plan, pair: PairPlan, admin: ClusterAdmin) -> tuple[GroupMember, ...]:
    group = admin.describe_group(membership_group(plan.topology, pair.source.alias))
    prefix = worker_client_id(plan.topology, "")
    return tuple(
        GroupMember(
            member.client_id.removeprefix(prefix) or member.id,
            tuple(sorted(number for _, number in member.partitions)),
        )
        for member in group.members
    )


def _open_transactions(
    source: ClusterPlan, highs: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
) -> "dict[TopicPartition, OpenTransaction]":
    """What records wait behind; a source that does not tell it hides no lag."""
    held = [key for key, high in highs.items() if ends.get(key, high) < high]
    if not held:
        return {}
    # Slow to import, and seldom needed.
    from replicator.wire.requests.open_transactions import oldest_by_partition, open_transactions

    try:
        return oldest_by_partition(
            open_transactions(
                source,
                held[:PEEKED_PARTITIONS],
                client_id=CLIENT_ID,
                timeout_seconds=CLUSTER_SECONDS,
            )
        )
    except ReplicatorError:
        return {}


def _oldest_waiting(
    source: ClusterPlan,
    checkpoints: Mapping[TopicPartition, Checkpoint],
    starts: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
) -> dict[TopicPartition, int]:
    """Timestamps of the first records not copied yet, read from the source; bounded in time.

    The last copied record's time would not do: after an idle hour the next record would look an
    hour late the moment it is written.
    """
    behind: dict[TopicPartition, int] = {}
    for key, end in ends.items():
        checkpoint = checkpoints.get(key)
        start = starts.get(key, 0)
        position = max(checkpoint.offset if checkpoint is not None else start, start)
        if position < end and len(behind) < PEEKED_PARTITIONS:
            behind[key] = position
    if not behind:
        return {}
    consumer = open_consumer(
        consumer_config(
            source,
            client_id=CLIENT_ID,
            fetch_wait_seconds=0.05,
            partition_fetch_bytes=1024,  # the broker gives at least one batch
            queue_bytes=16 * 1024 * 1024,
        )
    )
    found: dict[TopicPartition, int] = {}
    try:
        # Asked first, leaders are known at once; the library alone takes half a second to ask.
        with kafka_errors(f"cluster:{source.alias}", "read the oldest records that wait"):
            consumer.list_topics(timeout=CLUSTER_SECONDS)
        consumer.assign([ClientPartition(*key, offset) for key, offset in behind.items()])
        deadline = time.monotonic() + PEEK_SECONDS
        left = set(behind)
        while left and time.monotonic() < deadline:
            message = consumer.poll(deadline - time.monotonic())
            if message is None:
                continue
            key = (message.topic() or "", message.partition() or 0)
            if message.error() is None and key in left:
                found[key] = message.timestamp()[1]
                consumer.pause([ClientPartition(*key)])
            left.discard(key)  # read, or at its end: only markers are left to be read
    finally:
        consumer.close()
    return found
