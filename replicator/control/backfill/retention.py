"""Which finished backfill records nobody needs any more: the pure rule.

A ``done`` record makes lanes read the checkpoint that a task left, shows a later run of its job what is
finished, and answers a task that is repeated. So it may go once the partition's lane has stored
progress of its own well after it, no other range of its job is under way, and a day has passed. A
partition in which nothing moves keeps it: one small record.
"""

from collections.abc import Mapping

from replicator.control.records.pair_records import BackfillRecord
from replicator.control.store.state import ControlState
from replicator.formats.checkpoint import Checkpoint
from replicator.identifiers import TopicPartition

KEEP_MS = 24 * 3_600_000
CLOCKS_MS = 3_600_000
"""By how much clocks of two hosts may differ: a checkpoint this much younger is the lane's own."""


def finished(control: ControlState, source: str, *, now_ms: int) -> tuple[BackfillRecord, ...]:
    """Records of ranges that ended long ago, of jobs that have nothing under way."""
    records = control.seeds(source)
    busy = {_job(record) for record in records if record.state != "done"}
    return tuple(
        record
        for record in records
        if record.state == "done" and now_ms - record.at_ms >= KEEP_MS and _job(record) not in busy
    )


def expired(
    control: ControlState,
    source: str,
    checkpoints: Mapping[TopicPartition, Checkpoint],
    *,
    now_ms: int,
) -> tuple[BackfillRecord, ...]:
    """Those of them that may go."""
    return tuple(
        record
        for record in finished(control, source, now_ms=now_ms)
        if control.topic(source, record.link, record.topic) is None
        or _moved_on(record, checkpoints.get((record.topic, record.partition)))
    )


def _moved_on(record: BackfillRecord, checkpoint: Checkpoint | None) -> bool:
    return (
        checkpoint is not None
        and checkpoint.offset > record.position
        and checkpoint.at_ms >= record.at_ms + CLOCKS_MS
    )


def _job(record: BackfillRecord) -> str:
    return record.run.partition(".")[0]
