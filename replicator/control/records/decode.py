"""Reading any control record: the kinds there are, and what happens to those this release does not know.

Fields of newer releases are kept when a record is written again; records of kinds that this
release does not know are skipped, whatever their version; a known kind of an unknown version is refused,
because acting on half of a decision is worse than stopping. A new kind begins with version 1: releases before
this one refused any other.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pydantic import ValidationError

from replicator.control.records.base import Record, unpacked, wire_name
from replicator.control.records.drill_records import DrillRecord
from replicator.control.records.pair_records import (
    AcceptedGap,
    BackfillRecord,
    Binding,
    GapTaken,
    Layout,
    OppositeTopologies,
    Pause,
    ProblemRecord,
    QuarantineOutcome,
    Share,
    TopicRecord,
)
from replicator.control.records.role_records import (
    ContactRecord,
    DrainedRecord,
    FenceRecord,
    ReturnRecord,
    RoleRecord,
    SalvageRecord,
    SightingRecord,
    StepRecord,
    TransitionRecord,
)
from replicator.control.records.worker_records import WorkerRecord
from replicator.errors import StoredFormatError
from replicator.kafka.clients.wire_json import decode_key, decode_value

KINDS: dict[str, type[Record]] = {
    kind.KIND: kind
    for kind in (
        Binding, Layout, TopicRecord, Pause, AcceptedGap, WorkerRecord, Share, ProblemRecord,
        OppositeTopologies,
        QuarantineOutcome, GapTaken, BackfillRecord, RoleRecord, TransitionRecord, StepRecord, FenceRecord,
        ContactRecord, SalvageRecord, SightingRecord, DrainedRecord, DrillRecord,
        ReturnRecord,
    )
}  # fmt: skip

Identity = tuple[str, tuple[Any, ...]]
"""Kind and key values: what a record is about, whether it holds or not."""


Decoded = tuple[Identity, Record | None] | None


@dataclass(slots=True)
class _Last:
    """The value that was read last under a key, and what it says."""

    held: tuple[bytes, Decoded] | None = None


@lru_cache(maxsize=10_000)
def _last(key: bytes) -> _Last:  # noqa: ARG001 # by key
    return _Last()


def decode_record(key: bytes, value: bytes | None) -> Decoded:
    """Reads one control record; the record is None for a tombstone, all is None for other kinds.

    Most records are read again and again and hardly ever change: what was read last under a key is kept. What was
    read before that is not, as some change every few seconds and are as large as all topics of a flow.

    Raises:
        StoredFormatError: for an unknown version of a known kind, or content that is not ours.
    """
    last = _last(key)
    held = last.held
    if held is not None and held[0] == value:
        return held[1]
    decoded = _decoded(key, value)
    last.held = None if value is None else (value, decoded)
    return decoded


def _decoded(key: bytes, value: bytes | None) -> Decoded:
    where = decode_key(key, kinds=KINDS)
    kind = KINDS.get(str(where.get("kind")))
    if kind is None:
        return None
    fields = {name: item for name, item in where.items() if name not in {"kind", "v"}}
    identity = (kind.KIND, tuple(fields.get(wire_name(name)) for name in kind.KEY))
    if value is None:
        return identity, None
    content = {name: item for name, item in unpacked(decode_value(value)).items() if name != "v"}
    try:
        return identity, kind.model_validate({**content, **fields})
    except ValidationError as error:
        raise StoredFormatError(
            f"a '{kind.KIND}' record of the control topic cannot be read: {error.errors()[0]['msg']}",
            remedy="Something else wrote into the control topic; nothing was guessed.",
        ) from error
