"""Taking a lane over: look at the targets, ask the source, decide every start."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from replicator.dataplane.progress.partition_health import Side
from replicator.dataplane.progress.partition_state import PartitionState
from replicator.dataplane.takeover.applying import adopt_target, apply_decision, learn_epochs
from replicator.dataplane.takeover.changed_logs import ChangedLogs
from replicator.dataplane.takeover.own_transaction import AbortIn, without_hidden_copies
from replicator.dataplane.takeover.rewinds import last_copies_in_order
from replicator.dataplane.takeover.source_looks import look_at_source
from replicator.dataplane.takeover.stale_answers import Answer, stale_answers
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
from replicator.formats.checkpoint import Checkpoint, TargetClaim
from replicator.identifiers import TopicPartition
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.policy.values import StartFrom

OnFailure = Callable[[PartitionState, Side, ReplicatorError], None]
"""Takes in why a partition cannot be read, or written, now."""


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
    """What was seen of the targets, by source partition; ``last_copies`` where a look was needed.

    ``stale`` are those whose targets' brokers do not agree about them, with the reason: nothing is known of these.
    """

    seen: Mapping[TopicPartition, SeenTarget] = field(default_factory=dict)
    last_copies: Mapping[TopicPartition, LastCopy] = field(default_factory=dict)
    stale: Mapping[TopicPartition, ReplicatorError] = field(default_factory=dict)


def look_at_targets(
    spec: LaneSpec,
    states: Iterable[PartitionState],
    checkpoints: Mapping[TopicPartition, Checkpoint],
    *,
    client_id: str,
    changed: ChangedLogs,
    count: CountCopies | None = None,
    abort_in: AbortIn | None = None,
) -> TargetLooks:
    """Asks the target about all partitions at once, and reads the last copies of those that may lack some.

    ``changed`` knows of which leaders the lane's client has heard: what an earlier one shows is not believed.
    ``count`` finds the last copies by counting, where they carry no marks. ``abort_in`` ends copies with marks that
    the lane left undecided there.

    Raises:
        ReplicatorError: the target cannot be reached, or a suspect log not be read to its end.
    """
    targets = {state.key: (state.target_topic, state.partition) for state in states}
    found = read_targets(spec.target, targets.values(), client_id=client_id)
    seen = {key: found[target] for key, target in targets.items() if target in found}
    held = {key: checkpoint for key, checkpoint in checkpoints.items() if key in seen}
    doubted = _doubted(spec, seen, held, targets, changed, client_id=client_id)
    seen = {key: one for key, one in seen.items() if key not in doubted}
    for key, one in seen.items():
        changed.looked(targets[key], one.leader_epoch, one.topic_id)
    suspects = {
        targets[key]: one
        for key, one in seen.items()
        if key in held and needs_look(held[key].target, one)
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
        return TargetLooks(seen, {**copies, **marked(anew)}, doubted)
    if count is not None and asked and count.needed:
        return TargetLooks(seen, _last_copies(asked, checkpoints, count, marked), doubted)
    return TargetLooks(seen, marked(asked), doubted)


def _doubted(
    spec: LaneSpec,
    seen: Mapping[TopicPartition, SeenTarget],
    held: Mapping[TopicPartition, Checkpoint],
    targets: Mapping[TopicPartition, TopicPartition],
    changed: ChangedLogs,
    *,
    client_id: str,
) -> dict[TopicPartition, ReplicatorError]:
    """Targets whose logs seem to be shorter, of an earlier leader or another topic, to a broker that may be behind.

    What a later leader shows, and no less, is looked at without that question.
    """
    answers: dict[TopicPartition, Answer] = {}
    for key, one in seen.items():
        place, checkpoint = targets[key], held.get(key)
        claim = TargetClaim() if checkpoint is None else checkpoint.target
        epoch, topic_id = changed.met(place)
        known = ((claim.leader_epoch, claim.topic_id), (epoch, topic_id))
        epochs = [each for each, of in known if of in {"", one.topic_id}]
        answer = Answer(
            one.topic_id,
            one.leader_epoch,
            known_id=topic_id or claim.topic_id,
            known_epoch=max(epochs, default=-1),
        )
        if answer.goes_back or one.end < claim.end:
            answers[place] = answer
    stale = stale_answers(spec.target, answers, client_id=client_id)
    return {key: stale[targets[key]] for key in seen if targets[key] in stale}


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
    on_failure: OnFailure,
) -> dict[PartitionState, StartDecision]:
    """Asks the source once for all partitions and decides each one.

    A partition about which a cluster cannot answer now is left out, and ``on_failure`` is told why: it
    still needs its check, and is asked about again.
    """
    states = list(states)
    looks = look_at_source(
        spec, [state for state in states if state.key not in targets.stale], checkpoints, source
    )
    decisions: dict[PartitionState, StartDecision] = {}
    for state in states:
        if state.key in targets.stale:
            on_failure(state, "target", targets.stale[state.key])
            continue
        if state.key in looks.failures:
            on_failure(state, "source", looks.failures[state.key])
        facts = looks.logs.get(state.key)
        if facts is None:
            continue
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
