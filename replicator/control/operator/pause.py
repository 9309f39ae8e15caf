"""Durable pause and resume: records in the control topic that every worker follows.

A pause outlives workers. Resuming a scope ends its own pause and every one inside it. Accepting a
gap lets partitions go on that stopped because source records are gone, or one that waits before records
that can never be read; the decision, and what is given up, stays on record.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from replicator.clock import Clock, SystemClock
from replicator.control.operator.accepted_gaps import (
    CLIENT_ID,
    gap_of_damaged,
    gaps_of_stopped,
)
from replicator.control.records.pair_records import AcceptedGap, Pause, TopicRecord
from replicator.control.store.read import require_control
from replicator.control.store.state import ControlState
from replicator.errors import InputError, RefusedError
from replicator.identifiers import JsonObject, control_topic
from replicator.kafka.logs.checkpoint_log import read_checkpoints
from replicator.kafka.logs.log_writer import LogWriter
from replicator.topology.plan import PairPlan, Plan, find_pair


@dataclass(frozen=True, slots=True)
class Scope:
    """What is to be paused or resumed: a pair's flow, a topic of it, a partition of that."""

    pair: PairPlan
    topic: str | None
    partition: int | None

    def covers(self, topic: str | None, partition: int | None) -> bool:
        """Whether something is this scope or lies inside it."""
        return self.topic in {None, topic} and self.partition in {None, partition}

    def words(self) -> str:
        """The scope for a person."""
        parts = [self.topic or "", "" if self.partition is None else str(self.partition)]
        inside = "/".join(part for part in parts if part)
        return f"{self.pair.id} {inside}".strip()


def pause_flow(
    plan: Plan,
    flow: str,
    *,
    by: str,
    topic: str | None = None,
    partition: int | None = None,
    clock: Clock | None = None,
) -> JsonObject:
    """Pauses a flow, a topic or a partition until it is resumed.

    Returns:
        ``{"flow", "topic", "partition", "paused": true, "at", "by"}``.

    Raises:
        InputError: no such flow, topic or partition.
        ClusterError: the target does not answer.
    """
    scope, control = _look_up(plan, flow, topic, partition)
    _known(scope, control)
    now_ms = round((clock or SystemClock()).now() * 1000)
    record = Pause(
        flow=scope.pair.id, topic=topic, partition=partition, at_ms=now_ms, by=by
    )  # fmt: skip
    _write(plan, scope.pair, [record.encode()])
    return {
        "flow": scope.pair.id, "topic": topic, "partition": partition,
        "paused": True, "at": now_ms, "by": by,
    }  # fmt: skip


def resume_flow(
    plan: Plan,
    flow: str,
    *,
    by: str,
    topic: str | None = None,
    partition: int | None = None,
    accept_gap: bool = False,
    dry_run: bool = False,
    clock: Clock | None = None,
) -> JsonObject:
    """Ends pauses of a scope and of everything inside it; with ``accept_gap`` also stops.

    Damaged records of the source are given up only of a partition that is named; ``dry_run`` tells what would
    be done, and does nothing.

    Returns:
        ``{"flow", "topic", "partition", "dryRun", "resumed": [...], "gaps": [...]}``: which pauses ended and
        which lost source offsets were accepted.

    Raises:
        InputError: no such flow, topic or partition.
        RefusedError: something that contains the scope is paused, or there is no gap to accept.
        ClusterError: the target does not answer, or the source where damaged records are looked for.
    """
    scope, control = _look_up(plan, flow, topic, partition)
    topics = _known(scope, control)
    pauses = control.pauses(scope.pair.id)
    ended = [pause for pause in pauses if scope.covers(pause.topic, pause.partition)]
    wider = [
        pause
        for pause in pauses
        if pause not in ended
        and Scope(scope.pair, pause.topic, pause.partition).covers(topic, partition)
    ]
    if wider:
        held = Scope(scope.pair, wider[0].topic, wider[0].partition)
        raise RefusedError(
            f"{held.words()} is paused as a whole, so {scope.words()} would not move",
            subject=scope.words(),
            remedy=f"Resume that: replicator resume --flow '{scope.pair.id}'"
            + (f" --topic {held.topic}" if held.topic else ""),
        )
    now_ms = round((clock or SystemClock()).now() * 1000)
    gaps = _gaps(plan, scope, topics, by=by, now_ms=now_ms) if accept_gap else ()
    if accept_gap and not gaps:
        raise RefusedError(
            "no partition is stopped there, so there is no gap to accept",
            subject=scope.words(),
            remedy="Look at 'replicator status'. To give damaged records up, name --topic and --partition.",
        )
    if not dry_run:
        entries = [*(p.tombstone() for p in ended), *(gap.encode() for gap in gaps)]
        _write(plan, scope.pair, entries)
    return {
        "flow": scope.pair.id,
        "topic": topic,
        "partition": partition,
        "dryRun": dry_run,
        "resumed": [{"topic": p.topic, "partition": p.partition} for p in ended],
        "gaps": [
            {
                "topic": gap.topic,
                "partition": gap.partition,
                "problem": gap.problem,
                "detail": gap.detail,
                "from": gap.lost.from_offset,
                "to": gap.lost.to_offset,
            }
            for gap in gaps
        ],
    }


def _look_up(
    plan: Plan, flow: str, topic: str | None, partition: int | None
) -> tuple[Scope, ControlState]:
    pair = find_pair(plan, flow)
    if partition is not None and topic is None:
        raise InputError("a partition needs its topic", remedy="Add --topic.")
    return Scope(pair, topic, partition), require_control(plan, pair, client_id=CLIENT_ID)


def _known(scope: Scope, control: ControlState) -> tuple[TopicRecord, ...]:
    topics = control.topics(scope.pair.source.alias)
    if scope.topic is None:
        return topics
    found = tuple(record for record in topics if record.topic == scope.topic)
    if not found:
        names = ", ".join(record.topic for record in topics[:5]) or "none yet"
        raise InputError(
            f"flow {scope.pair.id} has no topic '{scope.topic}'", remedy=f"Its topics: {names}."
        )
    if scope.partition is not None and not 0 <= scope.partition < found[0].partitions:
        raise InputError(
            f"topic '{scope.topic}' has no partition {scope.partition}",
            remedy=f"It has the partitions 0 to {found[0].partitions - 1}.",
        )
    return found


def _gaps(
    plan: Plan, scope: Scope, topics: Sequence[TopicRecord], *, by: str, now_ms: int
) -> tuple[AcceptedGap, ...]:
    names = {record.topic for record in topics}
    found = [
        checkpoint
        for checkpoint in read_checkpoints(plan.topology, scope.pair, client_id=CLIENT_ID).values()
        if checkpoint.topic in names and scope.covers(checkpoint.topic, checkpoint.partition)
    ]
    stopped = [checkpoint for checkpoint in found if checkpoint.problem]
    if not stopped and found and scope.partition is not None:
        # Named alone: what it is asked to give up is looked for on the source.
        return (gap_of_damaged(scope.pair, topics[0], found[0], by=by, now_ms=now_ms),)
    return gaps_of_stopped(scope.pair, stopped, by=by, now_ms=now_ms)


def _write(plan: Plan, pair: PairPlan, entries: Sequence[tuple[bytes, bytes | None]]) -> None:
    with LogWriter(pair.target, control_topic(plan.topology), client_id=CLIENT_ID) as writer:
        writer.write(entries)
