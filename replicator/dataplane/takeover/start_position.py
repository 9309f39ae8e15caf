"""Where a partition starts or goes on: the pure decision at every take-over and every check.

Invariant: a partition never moves past source records that were neither copied nor declared lost.
Where records are gone, either the partition stops with a problem (policy ``stop``) or the gap is
described in a detail that is stored with the checkpoint (policy ``report``).
"""

from dataclasses import dataclass
from typing import Literal

from replicator.formats.checkpoint import Checkpoint
from replicator.policy.values import OnTruncation, StartFrom

Problem = Literal["", "TRUNCATED", "RECREATED", "TARGET_REFUSES", "TARGET_REGRESSED"]


@dataclass(frozen=True, slots=True)
class SourceLog:
    """What the source says about one partition now.

    ``earliest`` and ``latest`` are log start and last stable offset; ``at_timestamp`` is the first
    offset at or after the policy's start time (None when not asked or none is that new).
    ``end`` is where the log ends, behind transactions that are open (None where that was not asked).
    ``diverged`` says that the client found the log cut below the position and written anew.
    """

    topic_id: str
    earliest: int
    latest: int
    at_timestamp: int | None = None
    diverged: bool = False
    end: int | None = None


@dataclass(frozen=True, slots=True)
class StartDecision:
    """``offset`` to read from; with a ``problem`` the partition must not be read at all.

    ``store`` says that the decision itself has to be stored (a first start, a gap, a stop).
    ``lost`` is the range of source offsets given up, half open, or None. ``target_loss`` says what the
    target had lost, where that is why it goes on here.
    """

    offset: int
    reason: str
    problem: Problem = ""
    detail: str = ""
    store: bool = False
    accepted_gap: str = ""
    lost: tuple[int, int] | None = None
    target_loss: str = ""


def decide_start(
    checkpoint: Checkpoint | None,
    facts: SourceLog,
    *,
    start_from: StartFrom,
    on_truncation: OnTruncation,
    accept_gap: str,
    unreadable: tuple[int, int] | None = None,
) -> StartDecision:
    """Decides from the stored checkpoint, the source's log and the flow's policy.

    With ``unreadable`` an operator accepted that these source offsets, half open, are passed over, and nothing
    else: ``accept_gap`` is the token of that decision.
    """
    if checkpoint is None:
        return _first_start(facts, start_from)
    fresh = accept_gap if accept_gap and accept_gap != checkpoint.accepted_gap else ""
    token = fresh if unreadable is None else ""
    kept = checkpoint.accepted_gap
    if checkpoint.topic_id and facts.topic_id and checkpoint.topic_id != facts.topic_id:
        detail = (
            f"the topic was deleted and created again: position {checkpoint.offset} belonged to "
            f"topic id {checkpoint.topic_id}, the topic there now is {facts.topic_id}"
        )
        if on_truncation == "report" or token:
            return StartDecision(
                facts.earliest,
                "recreated topic, from its start",
                detail=f"gap accepted: {detail}",
                store=True,
                accepted_gap=fresh
                or kept,  # offsets that were accepted were those of the old topic
                lost=(checkpoint.offset, checkpoint.offset),
            )
        return _stopped(checkpoint, "RECREATED", detail)
    loss = _loss(checkpoint, facts)
    if loss is not None:
        return _gap(checkpoint, loss, policy=on_truncation, token=token, fresh=fresh)
    if checkpoint.problem == "TARGET_REFUSES":
        # Nothing is missing. Accepted, the record is tried once more, else given to quarantine; that
        # is stored with the progress past it and not before, or a restart in between would forget it.
        if not token:
            return _stopped(checkpoint, "TARGET_REFUSES", checkpoint.detail)
        return StartDecision(
            checkpoint.offset, "the refused record is tried again", accepted_gap=token
        )
    if checkpoint.problem:
        # What stopped it is no longer visible (the log grew past the position again), but records
        # may be missing in between: only an operator ends a stop.
        if not token:
            return _stopped(checkpoint, _code(checkpoint.problem), checkpoint.detail)
        return _accepted(checkpoint, token, "gap", checkpoint.detail)
    if fresh and unreadable is not None:
        return _behind_damage(checkpoint, facts, unreadable, token=fresh)
    return StartDecision(checkpoint.offset, "from its checkpoint", accepted_gap=kept)


def _behind_damage(
    checkpoint: Checkpoint, facts: SourceLog, unreadable: tuple[int, int], *, token: str
) -> StartDecision:
    """Behind what an operator gave up; everything before it is copied first, and the word is used once."""
    begin, end = unreadable[0], min(unreadable[1], facts.latest)
    if checkpoint.offset < begin:
        kept = checkpoint.accepted_gap
        return StartDecision(checkpoint.offset, "from its checkpoint", accepted_gap=kept)
    if checkpoint.offset >= end:
        return StartDecision(
            checkpoint.offset, "behind what was damaged", accepted_gap=token, store=True
        )
    return StartDecision(
        end,
        "behind what cannot be read",
        detail=f"gap accepted: what the source has at offsets {begin} to {end - 1} cannot be read",
        store=True,
        accepted_gap=token,
        lost=(begin, end),
    )


def _first_start(facts: SourceLog, start_from: StartFrom) -> StartDecision:
    if start_from.kind == "latest":
        return StartDecision(facts.latest, "first start, from the end", store=True)
    if start_from.kind == "timestamp":
        offset = facts.latest if facts.at_timestamp is None else facts.at_timestamp
        return StartDecision(max(offset, facts.earliest), "first start, from a time", store=True)
    return StartDecision(facts.earliest, "first start, from the beginning", store=True)


@dataclass(frozen=True, slots=True)
class _Loss:
    """What is missing at the source, and where its log goes on."""

    detail: str
    resume_at: int
    lost: tuple[int, int]


def _loss(checkpoint: Checkpoint, facts: SourceLog) -> _Loss | None:
    position = checkpoint.offset
    if position < facts.earliest:
        return _Loss(
            f"offsets {position} to {facts.earliest - 1} vanished at the source before they were "
            f"copied; its log now starts at {facts.earliest}",
            facts.earliest,
            (position, facts.earliest),
        )
    # A log that lost a marker has the transaction open again whose records were copied: on behind them. There the lane
    # reads nothing before it ends, and knows no epoch but the leader's.
    end = facts.latest if facts.end is None else max(facts.end, facts.latest)
    if position > end or (position > facts.latest and not checkpoint.epoch_of_leader):
        if position <= end:
            return _Loss(
                f"the transaction at offset {facts.latest} of the source is open again, which was copied up to offset "
                f"{position}: the source lost its outcome",
                position,
                (position, position),
            )
        return _Loss(
            f"the source log ends at {end}, below the position {position}: the source "
            f"lost records that were already copied",
            end,
            (end, end),
        )
    if facts.diverged and not checkpoint.problem:
        return _Loss(
            f"the source log was cut below the position {position} and written anew, as an unclean "
            f"leader election does: what it holds before that position was not copied",
            position,
            (position, position),
        )
    return None


def _gap(
    checkpoint: Checkpoint, loss: _Loss, *, policy: OnTruncation, token: str, fresh: str
) -> StartDecision:
    if policy == "stop" and not token:
        return _stopped(checkpoint, "TRUNCATED", loss.detail)
    return StartDecision(
        loss.resume_at,
        "source data lost, gap on record",
        detail=f"gap accepted: {loss.detail}",
        store=True,
        accepted_gap=fresh or checkpoint.accepted_gap,
        lost=loss.lost,
    )


def _stopped(
    checkpoint: Checkpoint,
    problem: Problem,
    detail: str,
) -> StartDecision:
    return StartDecision(
        checkpoint.offset,
        "stopped by policy",
        problem=problem,
        detail=detail,
        store=checkpoint.problem != problem or checkpoint.detail != detail,
        accepted_gap=checkpoint.accepted_gap,
    )


def _code(problem: str) -> Problem:
    if problem == "RECREATED":
        return "RECREATED"
    return "TARGET_REGRESSED" if problem == "TARGET_REGRESSED" else "TRUNCATED"


def after_target_loss(checkpoint: Checkpoint, detail: str, *, accept_gap: str) -> StartDecision:
    """The start where the target lost records and nothing says which ones they were."""
    if accept_gap and accept_gap != checkpoint.accepted_gap:
        return _accepted(checkpoint, accept_gap, "gap on the target", detail)
    return _stopped(checkpoint, "TARGET_REGRESSED", detail)


def _accepted(checkpoint: Checkpoint, token: str, gap: str, detail: str) -> StartDecision:
    """On from where it stopped; how many records are missing is not known."""
    return StartDecision(
        checkpoint.offset,
        f"{gap} accepted by an operator",
        detail=f"gap accepted: {detail}",
        store=True,
        accepted_gap=token,
        lost=(checkpoint.offset, checkpoint.offset),
    )
