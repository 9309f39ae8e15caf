"""What was decided about a partition, written into its state: where it goes on, and what is expected of both logs."""

from collections.abc import Mapping

from replicator.dataplane.progress.partition_state import PartitionState
from replicator.dataplane.takeover.start_position import SourceLog, StartDecision
from replicator.dataplane.takeover.target_looks import LastCopy
from replicator.dataplane.takeover.target_loss import SeenTarget, claimed_now, rewound
from replicator.errors import ReplicatorError
from replicator.formats.checkpoint import Checkpoint, TargetClaim
from replicator.formats.left_out import LeftOut
from replicator.kafka.admin.admin import ClusterAdmin


def learn_epochs(decisions: Mapping[PartitionState, StartDecision], source: ClusterAdmin) -> None:
    """Where no record was read whose epoch would tell that the source was cut below it, its leader's epoch now.

    The log reached the position under that leader, or under an earlier one. Cut below it, the log holds the end of that
    epoch below the position from then on, however long it grows. To be asked after the positions were: one from
    a later leader would look like such a cut.
    """
    unknown = [
        state
        for state, decision in decisions.items()
        if state.position_epoch < 0 and not decision.problem
    ]
    if not unknown:
        return
    ends = source.log_ends([state.key for state in unknown])
    for state in unknown:
        end = ends.get(state.key)
        if end is None or isinstance(end, ReplicatorError) or end.leader_epoch < 0:
            continue  # as before: a cut below it shows only while the log is shorter
        if end.offset >= state.position:
            state.position_epoch, state.record_end = end.leader_epoch, state.position
            state.epoch_of_leader = True


def adopt_target(
    state: PartitionState,
    decision: StartDecision,
    checkpoint: Checkpoint | None,
    seen: SeenTarget | None,
    copy: LastCopy | None,
) -> None:
    """What the lane expects of the target's log from here on."""
    state.may_refuse = seen is None or not seen.all_in_sync
    decided = seen is not None and not decision.problem
    # Without an answer what was claimed before still holds: less than that is noticed.
    claim = TargetClaim() if checkpoint is None else checkpoint.target
    if seen is not None and decided:
        claim = claimed_now(checkpoint, seen)
    if checkpoint is not None and decision.offset < checkpoint.offset:
        claim = rewound(claim, decision.offset)
    if decided or checkpoint is not None:
        state.target.adopt(claim, undecided=decided and copy is not None and copy.undecided)


def apply_decision(
    state: PartitionState, decision: StartDecision, facts: SourceLog, checkpoint: Checkpoint | None
) -> None:
    """Writes the decision into the partition's state."""
    if checkpoint is not None and state.position < 0:
        state.restore(checkpoint)  # a new one; one under examination keeps its own counters
    state.position = decision.offset
    if checkpoint is None:
        state.start = decision.offset
    else:
        state.target_loss, state.left_out = checkpoint.target_loss, checkpoint.left_out
    if decision.lost is not None:
        state.left_out = LeftOut(known_from=decision.offset)
    same_place = checkpoint is not None and checkpoint.offset == decision.offset
    # What stood behind the last record may be gone since, markers with it: reading could not begin there.
    same_place = same_place and checkpoint is not None and checkpoint.record_end >= facts.earliest
    if checkpoint is not None and same_place and decision.lost is None:
        state.position_epoch, state.record_end = checkpoint.position_epoch, checkpoint.record_end
        state.epoch_of_leader = checkpoint.epoch_of_leader
    else:
        state.position_epoch = state.record_end = -1
    state.committed = (
        decision.offset if checkpoint is None else min(decision.offset, max(checkpoint.offset, 0))
    )
    state.problem = decision.problem
    keeps_detail = not decision.store and (checkpoint is None or not checkpoint.problem)
    state.detail = decision.detail or (state.detail if keeps_detail else "")
    state.accepted_gap = decision.accepted_gap
    state.source_end = max(facts.latest, decision.offset)
    state.needs_check = False
    state.diverged = False
    if checkpoint is not None and checkpoint.problem == "TARGET_REFUSES":
        accepted = decision.accepted_gap != checkpoint.accepted_gap
        state.retry_offset = checkpoint.offset if accepted else -1
    if decision.problem and checkpoint is not None:
        # The stored id is what proves that the topic was recreated: keep it until that is accepted.
        state.topic_id = checkpoint.topic_id
    else:
        state.topic_id = facts.topic_id
        if decision.lost is not None or decision.target_loss:
            state.leader_epoch = -1  # of another log, or of records behind those that are read next
