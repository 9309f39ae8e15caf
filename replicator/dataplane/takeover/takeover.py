"""Taking a lane over: read what its last owner stored, ask the source, decide every start.

Runs after the producer was initialised, so the last owner is fenced and its open transaction aborted:
nothing can be added to the checkpoints that are read here.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from replicator.dataplane.progress.partition_state import PartitionState
from replicator.dataplane.takeover.applying import adopt_target, apply_decision, learn_epochs
from replicator.dataplane.takeover.own_transaction import (
    AbortIn,
    OwnTransaction,
    without_hidden_copies,
)
from replicator.dataplane.takeover.rewinds import last_copies_in_order
from replicator.dataplane.takeover.start_position import (
    SourceLog,
    StartDecision,
    after_target_loss,
    decide_start,
)
from replicator.dataplane.takeover.target_looks import (
    LastCopy,
    find_last_copies,
    find_undecided_copies,
    read_targets,
)
from replicator.dataplane.takeover.target_loss import (
    SeenTarget,
    TargetLossFound,
    find_loss,
    moved_back,
    needs_look,
    recreated,
)
from replicator.dataplane.transport.spec import LaneSpec
from replicator.errors import ReplicatorError
from replicator.formats.checkpoint import Checkpoint
from replicator.identifiers import TopicPartition, checkpoints_topic
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.kafka.logs.compacted_log import LogTail
from replicator.kafka.logs.topic_lookup import OnWait
from replicator.policy.values import StartFrom


def lane_tail(spec: LaneSpec, *, client_id: str) -> LogTail:
    """Reads the lane's partition of the checkpoints topic; for ``read_lane_records``."""
    topic = checkpoints_topic(spec.topology, spec.source.alias)
    return LogTail(spec.target, topic, [spec.lane], client_id=client_id)


def read_lane_records(
    spec: LaneSpec,
    *,
    client_id: str,
    tail: LogTail | None = None,
    on_wait: OnWait = lambda _: None,
    own: OwnTransaction | None = None,
) -> dict[bytes, bytes]:
    """The last value of every key in the lane's partition: checkpoints, and its index.

    A ``tail`` that has read a part of them before reads the rest, and is closed.

    Backfill tasks write there too: what the last owner stored may stand behind a transaction of one
    of them that is open now, and must not be missed. ``on_wait`` is told every few seconds why that takes longer.
    One of the lane's own is ended, where ``own`` says how.
    """

    def waits(error: ReplicatorError) -> None:
        on_wait(error)
        if own is not None:
            place = (checkpoints_topic(spec.topology, spec.source.alias), spec.lane)
            own.end_where_it_hides(spec.target, place, client_id=client_id)

    with tail or lane_tail(spec, client_id=client_id) as opened:
        found = opened.load(
            timeout_seconds=30.0, past_open_transactions=True, known_to_exist=True, on_wait=waits
        )
        return found[spec.lane]


class CountCopies(Protocol):
    """Finds the last copies on targets by counting, where copies carry no marks."""

    @property
    def needed(self) -> bool:
        """Whether copies without a mark may stand on the target."""
        ...

    def __call__(
        self,
        ends: Mapping[TopicPartition, int],
        known: Mapping[TopicPartition, tuple[int, int]] | None = None,
    ) -> Mapping[TopicPartition, int]:
        """From source partitions with the ends of their targets to the source offsets of the last copies there.

        Those that cannot be told by counting are left out. ``known`` are copies to count from, by source and
        target offset.
        """
        ...


@dataclass(frozen=True, slots=True)
class TargetLooks:
    """What was seen of the targets, by source partition; ``last_copies`` where a look was needed."""

    seen: Mapping[TopicPartition, SeenTarget] = field(default_factory=dict)
    last_copies: Mapping[TopicPartition, LastCopy] = field(default_factory=dict)


def look_at_targets(
    spec: LaneSpec,
    states: Iterable[PartitionState],
    checkpoints: Mapping[TopicPartition, Checkpoint],
    *,
    client_id: str,
    count: CountCopies | None = None,
    abort_in: AbortIn | None = None,
) -> TargetLooks:
    """Asks the target about all partitions at once, and reads the last copies of those that may lack some.

    ``count`` finds the last copies by counting, where they carry no marks. ``abort_in`` ends copies with marks that
    the lane left undecided there.

    Raises:
        ReplicatorError: the target cannot be reached, or a suspect log not be read to its end.
    """
    targets = {state.key: (state.target_topic, state.partition) for state in states}
    found = read_targets(spec.target, targets.values(), client_id=client_id)
    seen = {key: found[target] for key, target in targets.items() if target in found}
    suspects = {
        targets[key]: one
        for key, one in seen.items()
        if (held := checkpoints.get(key)) is not None and needs_look(held.target, one)
    }
    asked = {key: seen[key].end for key in seen if targets[key] in suspects}
    origins = {target: key for key, target in targets.items()}

    def marked(some: Collection[TopicPartition]) -> dict[TopicPartition, LastCopy]:
        wanted = {targets[key]: suspects[targets[key]] for key in some}
        held = {targets[key]: checkpoints[key] for key in some}

        claims = {place: checkpoint.target for place, checkpoint in held.items()}

        def look_at(some: Mapping[TopicPartition, SeenTarget]) -> dict[TopicPartition, LastCopy]:
            return find_last_copies(
                spec.target, some, origins, source_alias=spec.source.alias, client_id=client_id
            )

        def look() -> dict[TopicPartition, LastCopy]:
            return last_copies_in_order(look_at, wanted, claims)

        copies = look() if abort_in is None else without_hidden_copies(look, abort_in)
        return {key: copies[targets[key]] for key in some if targets[key] in copies}

    if abort_in is not None and _marked(spec):
        first = {targets[key]: one for key, one in seen.items() if key not in checkpoints}
        first = {place: one for place, one in first.items() if one.start < one.end}

        def undecided() -> dict[TopicPartition, LastCopy]:
            return find_undecided_copies(
                spec.target, first, origins, source_alias=spec.source.alias, client_id=client_id
            )

        without_hidden_copies(undecided, abort_in)
    if not _marked(spec):
        # In a topic that was made anew only somebody else can have put copies back, as a restore does: with marks.
        anew = [key for key in asked if recreated(checkpoints[key].target, seen[key])]
        same = {key: end for key, end in asked.items() if key not in anew}
        counted = count(same) if count is not None and same else {}
        copies = {key: LastCopy(counted.get(key), counted=key in counted) for key in same}
        return TargetLooks(seen, {**copies, **marked(anew)})
    if count is not None and asked and count.needed:
        return TargetLooks(seen, _last_copies(asked, checkpoints, count, marked))
    return TargetLooks(seen, marked(asked))


def _last_copies(
    asked: Mapping[TopicPartition, int],
    checkpoints: Mapping[TopicPartition, Checkpoint],
    count: CountCopies,
    marked: Callable[[Collection[TopicPartition]], Mapping[TopicPartition, LastCopy]],
) -> dict[TopicPartition, LastCopy]:
    """The last copies in logs that both engines wrote.

    From the offset map on they are counted. Where that takes too long, from the last copy that carries a mark,
    if the last that was made carried one: to search for it among whole batches could take all day.
    """
    counted = dict(count(asked))
    left = [key for key in asked if key not in counted]
    found = marked([key for key in left if checkpoints[key].target.last_copied >= 0])
    known = {
        key: (copy.source_offset, copy.target_offset)
        for key, copy in found.items()
        if copy.source_offset is not None and copy.target_offset >= 0 and not copy.undecided
    }
    if known:
        counted.update(count({key: asked[key] for key in known}, known))
    return {
        key: LastCopy(counted[key], counted=True)
        if key in counted
        else replace(found.get(key, LastCopy(None)), mixed=True)
        for key in asked
    }


def decide_starts(
    spec: LaneSpec,
    states: Iterable[PartitionState],
    checkpoints: Mapping[TopicPartition, Checkpoint],
    source: ClusterAdmin,
    targets: TargetLooks,
    *,
    at_ms: int,
    on_failure: Callable[[PartitionState, ReplicatorError], None],
) -> dict[PartitionState, StartDecision]:
    """Asks the source once for all partitions and decides each one.

    A partition about which the source cannot answer now is left out, and ``on_failure`` is told why: it
    still needs its check, and is asked about again.
    """
    states = list(states)
    keys = [state.key for state in states]
    if not keys:
        return {}
    described = source.describe_each_topic({topic for topic, _ in keys})
    ids = {
        name: topic.topic_id
        for name, topic in described.items()
        if not isinstance(topic, ReplicatorError)
    }
    known = [key for key in keys if key[0] in ids]
    earliest = source.offsets(known, at="earliest", isolation="read_uncommitted")
    latest = source.offsets(known, at="latest", isolation="read_committed")
    behind = [
        key
        for key, stable in latest.items()
        if isinstance(stable, int) and key in checkpoints and checkpoints[key].offset > stable
    ]
    behind = behind if spec.settings.engine == "records" else []
    ends = source.offsets(behind, at="latest", isolation="read_uncommitted") if behind else {}
    start_from = spec.settings.start_from
    timed: Mapping[tuple[str, int], int | ReplicatorError] = {}
    first = [key for key in known if key not in checkpoints]
    if first and start_from.kind == "timestamp" and start_from.timestamp_ms is not None:
        timed = source.offsets(first, at=start_from.timestamp_ms, isolation="read_committed")
    decisions: dict[PartitionState, StartDecision] = {}
    for state in states:
        low, high = earliest.get(state.key), latest.get(state.key)
        at_timestamp = timed.get(state.key)
        end = ends.get(state.key)
        answers = (described.get(state.topic), low, high, at_timestamp, end)
        refused = next((each for each in answers if isinstance(each, ReplicatorError)), None)
        if refused is not None:
            on_failure(state, refused)
        if (
            not isinstance(low, int)
            or not isinstance(high, int)
            or isinstance(at_timestamp, ReplicatorError)
            or isinstance(end, ReplicatorError)
        ):
            continue
        facts = SourceLog(
            topic_id=ids[state.topic],
            earliest=low,
            latest=max(low, high),
            at_timestamp=at_timestamp if at_timestamp is not None and at_timestamp >= 0 else None,
            diverged=state.diverged,
            end=end,
        )
        checkpoint, decision = _decide(
            spec, state, checkpoints.get(state.key), facts, targets, at_ms=at_ms
        )
        decisions[state] = decision
        apply_decision(state, decision, facts, checkpoint)
        adopt_target(
            state, decision, checkpoint,
            targets.seen.get(state.key), targets.last_copies.get(state.key),
        )  # fmt: skip
    if spec.settings.engine == "records":
        learn_epochs(decisions, source)
    return decisions


def _decide(
    spec: LaneSpec,
    state: PartitionState,
    checkpoint: Checkpoint | None,
    facts: SourceLog,
    targets: TargetLooks,
    *,
    at_ms: int,
) -> tuple[Checkpoint | None, StartDecision]:
    """The decision, and the checkpoint it rests on: moved back where the target lost records."""
    lost: TargetLossFound | None = None
    # A copy that was made empty since then is known to lack everything.
    looked = checkpoint is not None and checkpoint.problem in {"", "TARGET_REGRESSED"}
    if looked and checkpoint is not None and state.key in targets.last_copies:
        copy = targets.last_copies[state.key]
        lost = find_loss(
            checkpoint, targets.seen[state.key], copy.source_offset,
            marked=_marked(spec), earliest=facts.earliest, counted=copy.counted, mixed=copy.mixed,
            never_deleted=copy.never_deleted,
        )  # fmt: skip
        if lost is not None and lost.resume_at is None:
            accept_gap = state.work.accept_gap if state.work.unreadable is None else ""
            return checkpoint, after_target_loss(checkpoint, lost.detail, accept_gap=accept_gap)
        if lost is not None:
            checkpoint = moved_back(checkpoint, lost, at_ms=at_ms)
    decision = decide_start(
        checkpoint,
        facts,
        start_from=StartFrom() if state.work.late else spec.settings.start_from,
        # Canaries that retention removed before they were copied are no loss.
        on_truncation=spec.settings.on_truncation if state.counted else "report",
        accept_gap=state.work.accept_gap,
        unreadable=state.work.unreadable,
    )
    if lost is not None and checkpoint is not None:
        decision = replace(decision, store=True, target_loss=checkpoint.target_loss.detail)
    return checkpoint, decision


def _marked(spec: LaneSpec) -> bool:
    """Whether copies say which records they are."""
    return spec.settings.provenance == "full" and spec.settings.engine == "records"
