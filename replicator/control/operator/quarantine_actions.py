"""Putting quarantined records back, or letting them go; each decision is kept on record."""

from collections.abc import Sequence

from replicator.clock import Clock, SystemClock
from replicator.control.operator.quarantine import (
    CLIENT_ID,
    Quarantined,
    find_quarantined,
    read_quarantine,
)
from replicator.control.records.pair_records import QuarantineOutcome
from replicator.errors import (
    NotFoundError,
    RecordRefusedError,
    RefusedError,
    SourceDataLostError,
    UnknownOutcomeError,
)
from replicator.identifiers import JsonObject, control_topic
from replicator.kafka.logs.log_writer import LogWriter
from replicator.policy.copies.provenance import Hop, encode_hop, find_hops, with_hop
from replicator.policy.values import Provenance
from replicator.topology.plan import PairPlan, Plan
from replicator.wire.records.record_batch import RawRecord
from replicator.wire.requests.fetch_one import fetch_record, record_from_bytes
from replicator.wire.requests.produce_one import produce_record


def list_quarantine(plan: Plan, pairs: Sequence[PairPlan], *, settled: bool = False) -> JsonObject:
    """The object of ``quarantine list``; with ``settled`` also records that were dealt with."""
    return {
        "records": [
            entry.as_json()
            for pair in pairs
            for entry in read_quarantine(plan, pair)
            if settled or entry.outcome is None
        ]
    }


def show_quarantined(plan: Plan, pairs: Sequence[PairPlan], record_id: str) -> JsonObject:
    """Everything about one kept record.

    Raises:
        InputError: the id is not known.
    """
    entries = [entry for pair in pairs for entry in read_quarantine(plan, pair)]
    return find_quarantined(entries, [record_id])[0].detail_json()


def replay(
    plan: Plan,
    pair: PairPlan,
    entries: Sequence[Quarantined],
    *,
    by: str,
    go_on: bool = False,
    clock: Clock | None = None,
) -> JsonObject:
    """Writes kept records to their target topics with their origin, in the order given.

    A record stands at the end of its partition then, after newer ones. Each is marked as soon as it
    is written; one whose write has no answer is not marked, and may be there. With ``go_on`` a record
    that cannot be replayed is reported among the others, as ``refused`` or ``unknown``.

    Raises:
        RefusedError: a record was replayed or discarded before; nothing was written. Without
            ``go_on`` also: neither the quarantine nor the source has its content; earlier ones are done.
        RecordRefusedError: the target still does not take one, without ``go_on``.
        UnknownOutcomeError: no answer about one, without ``go_on``.
    """
    _refuse_resolved(entries)
    policies = {str(flow.link): flow.policy for flow in pair.flows}
    done: list[JsonObject] = []
    for entry in entries:
        policy = policies.get(entry.link)
        provenance: Provenance = "full" if policy is None else policy.single_provenance
        try:
            record = replayed_record(_original(pair, entry), entry, pair, provenance)
            offset = produce_record(pair.target, entry.target_topic, entry.partition, record)
        except (RefusedError, RecordRefusedError, UnknownOutcomeError) as error:
            if not go_on:
                raise
            outcome = "unknown" if isinstance(error, UnknownOutcomeError) else "refused"
            done.append(
                {
                    "id": entry.id,
                    "outcome": outcome,
                    "detail": error.message,
                    "remedy": error.remedy,
                }
            )
            continue
        _settle(plan, pair, entry, "replayed", by=by, clock=clock)
        done.append({"id": entry.id, "outcome": "replayed", "targetOffset": offset})
    return {"records": done}


def discard(
    plan: Plan,
    pair: PairPlan,
    entries: Sequence[Quarantined],
    *,
    by: str,
    clock: Clock | None = None,
) -> JsonObject:
    """Marks kept records as given up; they stay readable until the topic's retention ends.

    Raises:
        RefusedError: a record was dealt with already.
    """
    _refuse_resolved(entries)
    for entry in entries:
        _settle(plan, pair, entry, "discarded", by=by, clock=clock)
    return {"records": [{"id": entry.id, "outcome": "discarded"} for entry in entries]}


def replayed_record(
    original: RawRecord, entry: Quarantined, pair: PairPlan, provenance: Provenance
) -> RawRecord:
    """The record as the lane would have written it: with this hop added, last. Pure.

    Header names are bytes that need not be text; the detour over str gives every byte back.
    """
    source = pair.source.alias
    hop = (
        Hop(source, entry.topic, entry.partition, entry.offset)
        if provenance == "full"
        else Hop(source)
    )
    headers = [(name.decode("utf-8", "surrogateescape"), value) for name, value in original.headers]
    written = with_hop(headers, find_hops(headers), encode_hop(hop))
    return RawRecord(
        offset=0,
        timestamp=original.timestamp,
        timestamp_type="CreateTime",
        key=original.key,
        value=original.value,
        headers=tuple((name.encode("utf-8", "surrogateescape"), value) for name, value in written),
    )


def _original(pair: PairPlan, entry: Quarantined) -> RawRecord:
    """The record as the source had it: as kept, or read again where only the place was kept."""
    if entry.raw:
        return record_from_bytes(entry.raw)
    if entry.raw is None and entry.value_kept:
        headers = tuple((name.encode(), value) for name, value in entry.headers)
        return RawRecord(
            entry.offset, entry.timestamp_ms, "CreateTime", entry.key, entry.value, headers
        )
    try:
        return fetch_record(pair.source, entry.topic, entry.partition, entry.offset)
    except (NotFoundError, SourceDataLostError) as error:
        raise RefusedError(
            "only its place was kept, and the source does not have it any more",
            subject=f"{entry.topic}/{entry.partition} at {entry.offset}",
            remedy=f"Discard it: replicator quarantine discard {entry.id}",
        ) from error


def _refuse_resolved(entries: Sequence[Quarantined]) -> None:
    for entry in entries:
        if entry.outcome is not None:
            raise RefusedError(
                f"it was {entry.outcome} already",
                subject=f"quarantined record {entry.id}",
                remedy="Nothing was done.",
            )


def _settle(
    plan: Plan,
    pair: PairPlan,
    entry: Quarantined,
    outcome: str,
    *,
    by: str,
    clock: Clock | None,
) -> None:
    record = QuarantineOutcome.model_validate(
        {
            "id": entry.id,
            "source": pair.source.alias,
            "topic": entry.topic,
            "partition": entry.partition,
            "offset": entry.offset,
            "outcome": outcome,
            "at_ms": round((clock or SystemClock()).now() * 1000),
            "by": by,
        }
    )
    with LogWriter(pair.target, control_topic(plan.topology), client_id=CLIENT_ID) as writer:
        writer.write([record.encode()])
