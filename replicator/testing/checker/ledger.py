"""Events put in order for the rules: who wrote what with which outcome, and what is stored where."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from operator import attrgetter
from typing import NamedTuple

from replicator.testing.checker.history import (
    FINAL,
    Committed,
    Completed,
    Delivered,
    Event,
    Flow,
    GroupStarted,
    Measured,
    Outcome,
    Polled,
    Promised,
    Role,
    Salvaged,
    Scanned,
    Seen,
    Sent,
    TransactionEnded,
)


class Write(NamedTuple):
    """A sent record with its outcome; ``aborted`` when its transaction was."""

    sent: Sent
    outcome: Outcome
    aborted: bool
    partition: int | None
    offset: int | None
    completed_at: float | None


Place = tuple[str, str, int]
"""Cluster, topic, partition."""


@dataclass(slots=True)
class Ledger:
    """A whole history, folded; built once and then only read.

    Attributes:
        writes: by record id.
        seen: what the final scans found in each place, in offset order.
        views: the same for each look at the running system.
        scanned_clusters: those a final scan looked at.
        polls: what each reader was given, in its order.
    """

    writes: dict[str, Write] = field(default_factory=dict)
    seen: dict[Place, list[Seen]] = field(default_factory=dict)
    views: dict[str, dict[Place, list[Seen]]] = field(default_factory=dict)
    scanned_clusters: set[str] = field(default_factory=set)
    flows: list[Flow] = field(default_factory=list)
    group_events: list[Delivered | Committed] = field(default_factory=list)
    polls: list[Polled] = field(default_factory=list)
    groups_from_start: set[str] = field(default_factory=set)
    roles: list[Role] = field(default_factory=list)
    salvaged: set[str] = field(default_factory=set)
    promised: list[Promised] = field(default_factory=list)
    measured: list[Measured] = field(default_factory=list)


def fold(events: Iterable[Event]) -> Ledger:
    """Puts events in order.

    A record of a transaction has the transaction's outcome: acknowledged only if both the record
    and the commit were, unknown if either is. Two scans of one place in one view are merged, and
    an offset that both saw counts once.
    """
    ledger = Ledger()
    sent: list[Sent] = []
    completed: dict[str, Completed] = {}
    transactions: dict[str, Outcome] = {}
    views: dict[str, dict[Place, list[Seen]]] = {FINAL: {}}
    for event in events:
        if isinstance(event, Seen):
            places = views.setdefault(event.view, {})
            places.setdefault((event.cluster, event.topic, event.partition), []).append(event)
        elif isinstance(event, Polled):
            ledger.polls.append(event)
        elif isinstance(event, Sent):
            sent.append(event)
        elif isinstance(event, Completed):
            completed[event.id] = event
        elif isinstance(event, TransactionEnded):
            transactions[event.transaction] = event.outcome
        else:
            _fold_rest(ledger, event)
    for each in sent:
        ledger.writes[each.id] = _write(each, completed.get(each.id), transactions)
    for places in views.values():
        for place, records in places.items():
            places[place] = list(
                {each.offset: each for each in sorted(records, key=attrgetter("offset"))}.values()
            )
    ledger.seen = views.pop(FINAL)
    ledger.views = views
    return ledger


def _fold_rest(ledger: Ledger, event: Event) -> None:
    match event:
        case Scanned():
            if event.view == FINAL:
                ledger.scanned_clusters.add(event.cluster)
        case Delivered() | Committed():
            ledger.group_events.append(event)
        case Flow():
            ledger.flows.append(event)
        case GroupStarted():
            ledger.groups_from_start.add(event.group)
        case Role():
            ledger.roles.append(event)
        case Salvaged():
            ledger.salvaged.add(event.id)
        case Promised():
            ledger.promised.append(event)
        case Measured():
            ledger.measured.append(event)


def _write(sent: Sent, done: Completed | None, transactions: dict[str, Outcome]) -> Write:
    outcome: Outcome = done.outcome if done is not None else "unknown"
    aborted = False
    if sent.transaction is not None:
        ended = transactions.get(sent.transaction, "unknown")
        aborted = ended == "fail"
        if aborted or outcome == "ok":
            outcome = ended
    partition = sent.partition
    if done is not None and done.partition is not None:
        partition = done.partition
    return Write(
        sent=sent,
        outcome=outcome,
        aborted=aborted,
        partition=partition,
        offset=done.offset if done is not None else None,
        completed_at=done.at if done is not None else None,
    )
