"""What an operator gives up by accepting a gap: found out on the source, and recorded as that operator's decision."""

import secrets
from collections.abc import Sequence
from dataclasses import replace

from replicator.control.records.pair_records import AcceptedGap, Lost, TopicRecord
from replicator.errors import RefusedError, ReplicatorError, SourceDamagedError
from replicator.formats.checkpoint import Checkpoint
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.topology.plan import PairPlan

CLIENT_ID = "replicator-operator"


def gaps_of_stopped(
    pair: PairPlan, stopped: Sequence[Checkpoint], *, by: str, now_ms: int
) -> tuple[AcceptedGap, ...]:
    """What partitions that stopped lack."""
    starts = _source_starts(pair, stopped)
    return tuple(
        _accepted(
            pair, checkpoint, checkpoint.offset,
            starts.get((checkpoint.topic, checkpoint.partition)), by=by, now_ms=now_ms,
        )
        for checkpoint in stopped
    )  # fmt: skip


def gap_of_damaged(
    pair: PairPlan, topic: TopicRecord, checkpoint: Checkpoint, *, by: str, now_ms: int
) -> AcceptedGap:
    """What the source cannot give out at a partition's position, as few offsets as can be told.

    Raises:
        RefusedError: the source gives out what stands there, or Spark copies it.
        ReplicatorError: the source does not answer.
    """
    # Here, because the protocol's codec takes half a second to import.
    from replicator.batches.registry.unreadable import unreadable_at

    key = (checkpoint.topic, checkpoint.partition)
    place = f"{key[0]}/{key[1]}"
    flow = next((each for each in pair.flows if each.link == topic.link), None)
    if flow is not None and flow.policy.runtime == "spark":
        raise RefusedError(
            f"{place} is copied by Spark, which cannot pass over damaged records",
            subject=place,
            remedy="Remove them from the source with kafka-delete-records.sh, and accept that gap.",
        )
    found = unreadable_at(pair.source, key, checkpoint.offset, client_id=CLIENT_ID)
    if found is None:
        raise RefusedError(
            f"{place} is not stopped, and the source gives out what stands at its position, offset "
            f"{checkpoint.offset}: there is no gap to accept",
            subject=place,
            remedy="What can be read is copied by itself. Look at 'replicator status'.",
        )
    detail = f"offsets {found.start} to {found.end - 1} cannot be read ({found.why})"
    damaged = replace(checkpoint, problem=SourceDamagedError.code, detail=detail)
    return _accepted(pair, damaged, found.start, found.end, by=by, now_ms=now_ms)


def _accepted(
    pair: PairPlan, stopped: Checkpoint, start: int, end: int | None, *, by: str, now_ms: int
) -> AcceptedGap:
    return AcceptedGap(
        source=pair.source.alias,
        topic=stopped.topic,
        partition=stopped.partition,
        token=secrets.token_hex(8),
        at_ms=now_ms,
        by=by,
        problem=stopped.problem,
        detail=stopped.detail,
        lost=Lost(from_offset=start, to_offset=end),
    )


def _source_starts(pair: PairPlan, stopped: Sequence[Checkpoint]) -> dict[tuple[str, int], int]:
    """Where the source's logs begin now; empty when it does not answer: the gap stands anyway."""
    keys = [(checkpoint.topic, checkpoint.partition) for checkpoint in stopped]
    try:
        with ClusterAdmin(pair.source, client_id=CLIENT_ID, timeout_seconds=5.0) as admin:
            starts = admin.known_offsets(keys, "earliest")
    except ReplicatorError:
        return {}
    offsets = {
        (checkpoint.topic, checkpoint.partition): checkpoint.offset for checkpoint in stopped
    }
    return {key: start for key, start in starts.items() if start >= offsets[key]}
