"""Rules about records: is every one where it belongs, once, in order, unchanged; pure.

A record is known by its id. The origin its hop header states is checked against the truth; copies
without that header (whole batches carry none) are recognised all the same.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from replicator.testing.checker.anomalies import Anomaly, Findings
from replicator.testing.checker.history import Seen
from replicator.testing.checker.ledger import Ledger, Place, Write
from replicator.testing.checker.routes import Routes, parse_hops


class Missing(NamedTuple):
    """A record of the unreplicated tail."""

    write: Write
    target: str


@dataclass(slots=True)
class _Copies:
    """What the targets hold; ``natives`` is the true place of each record at its source."""

    natives: dict[str, tuple[int, int]]
    count: dict[tuple[str, str, str], int] = field(default_factory=dict)  # id, cluster, topic
    misplaced: set[tuple[str, str]] = field(default_factory=set)  # id, cluster
    highest: dict[tuple[str, Place], int] = field(default_factory=dict)  # cluster, origin partition


def judge_records(ledger: Ledger, routes: Routes, findings: Findings) -> list[Missing]:
    """Looks at every record of the final scans and at every write; returns the unseen tail.

    The tail is returned rather than reported, as a promise may cover it.
    """
    copies = _Copies(natives=_natives(ledger))
    inflow = {flow.target for flow in ledger.flows}
    for place in sorted(ledger.seen):
        _judge_place(place, ledger, routes, copies, findings, has_inflow=place[0] in inflow)
    return _judge_arrival(ledger, routes, copies, findings)


def _natives(ledger: Ledger) -> dict[str, tuple[int, int]]:
    """Partition and offset of each record at its source, from its report or from the scan."""
    found = {
        id_: (write.partition, write.offset)
        for id_, write in ledger.writes.items()
        if write.offset is not None and write.partition is not None
    }
    for (cluster, topic, partition), records in ledger.seen.items():
        for seen in records:
            if seen.id not in found and not seen.hops:
                write = ledger.writes.get(seen.id)
                if write and write.sent.cluster == cluster and write.sent.topic == topic:
                    found[seen.id] = (partition, seen.offset)
    return found


def _judge_place(
    place: Place,
    ledger: Ledger,
    routes: Routes,
    copies: _Copies,
    findings: Findings,
    *,
    has_inflow: bool,
) -> None:
    cluster, topic, _ = place
    newest: dict[Place, int] = {}  # per origin partition
    expected: dict[tuple[str, str], bool] = {}  # origin topic -> whether it belongs in this one
    for seen in ledger.seen[place]:
        write = ledger.writes.get(seen.id)
        if write is None or write.outcome == "fail":
            _judge_unwritten(seen, write, findings)
            continue
        native = copies.natives.get(seen.id)
        source = (write.sent.cluster, write.sent.topic)
        if source[0] == cluster:
            _judge_at_home(seen, write, native, findings, has_inflow=has_inflow)
            continue
        _judge_hops(seen, write, native, findings)
        _judge_content(seen, write, findings)
        belongs = expected.get(source)
        if belongs is None:
            belongs = expected[source] = (cluster, topic) in routes.destinations(*source)
        _judge_copy(
            seen,
            write,
            native,
            belongs=belongs,
            newest=newest,
            copies=copies,
            findings=findings,
        )


def _judge_copy(
    seen: Seen,
    write: Write,
    native: tuple[int, int] | None,
    *,
    belongs: bool,
    newest: dict[Place, int],
    copies: _Copies,
    findings: Findings,
) -> None:
    right_place = belongs and (native is None or native[0] == seen.partition)
    if not right_place:
        copies.misplaced.add((seen.id, seen.cluster))
        findings.add(Anomaly.MISROUTED, f"{where(seen)}: {origin(write)}")
    copy = (seen.id, seen.cluster, seen.topic)
    number = copies.count[copy] = copies.count.get(copy, 0) + 1
    if number > 1:
        findings.add(Anomaly.DUPLICATE, f"{where(seen)}: copy {number} of {origin(write)}")
        return
    if native is None:
        return
    home = (write.sent.cluster, write.sent.topic, native[0])
    offset = native[1]
    if offset > copies.highest.get((seen.cluster, home), -1):
        copies.highest[seen.cluster, home] = offset
    if offset >= newest.get(home, -1):
        newest[home] = offset
    elif right_place:
        text = f"{where(seen)}: {origin(write)} after offset {newest[home]}"
        findings.add(Anomaly.REORDER, text)


def _judge_unwritten(seen: Seen, write: Write | None, findings: Findings) -> None:
    if write is not None and write.aborted:
        findings.add(Anomaly.ABORTED, f"{where(seen)}: of {write.sent.transaction}")
    else:
        findings.add(Anomaly.PHANTOM, f"{where(seen)}: nobody wrote it, or it had failed")


def _judge_at_home(
    seen: Seen,
    write: Write,
    native: tuple[int, int] | None,
    findings: Findings,
    *,
    has_inflow: bool,
) -> None:
    here = (seen.partition, seen.offset)
    if seen.topic == write.sent.topic and not seen.hops and native in (None, here):
        return
    # Without any flow into this cluster it can only be the producer that wrote twice.
    anomaly = Anomaly.LOOP if has_inflow or seen.hops else Anomaly.DUPLICATE
    findings.add(anomaly, f"{where(seen)}: {origin(write)} again, at home")


def _judge_hops(
    seen: Seen, write: Write, native: tuple[int, int] | None, findings: Findings
) -> None:
    if not seen.hops:
        return
    source = (write.sent.cluster, write.sent.topic)
    if native is not None and seen.hops == f"{source[0]}/{source[1]}/{native[0]}/{native[1]}":
        return  # straight from home: by far the most, and not worth parsing
    hops = parse_hops(seen.hops)
    if not hops:
        findings.add(Anomaly.DIVERGENT, f"{where(seen)}: hop header '{seen.hops}' is not readable")
        return
    passed = [hop.alias for hop in hops]
    if seen.cluster in passed or len(set(passed)) < len(passed):
        findings.add(Anomaly.LOOP, f"{where(seen)}: came by {seen.hops}")
        return
    first = hops[0]
    true_origin = (*source, *(native or (None, None)))
    stated = tuple(first) if native and first.topic is not None else (first.alias,)
    if stated != true_origin[: len(stated)]:
        findings.add(
            Anomaly.DIVERGENT, f"{where(seen)}: states origin {seen.hops}, {origin(write)}"
        )


def _judge_content(seen: Seen, write: Write, findings: Findings) -> None:
    sent = write.sent
    if seen[6:10] == (sent.key, sent.value, sent.headers, sent.timestamp_ms):
        return
    differing = [
        name
        for name in ("key", "value", "headers", "timestamp_ms")
        if getattr(seen, name) != getattr(sent, name)
    ]
    findings.add(Anomaly.DIVERGENT, f"{where(seen)}: {', '.join(differing)} of {origin(write)}")


def _judge_arrival(
    ledger: Ledger, routes: Routes, copies: _Copies, findings: Findings
) -> list[Missing]:
    missing: list[Missing] = []
    for id_, write in ledger.writes.items():
        if write.outcome != "ok":
            continue
        source = (write.sent.cluster, write.sent.topic)
        for cluster, topic in routes.destinations(*source):
            if (id_, cluster, topic) in copies.count or cluster not in ledger.scanned_clusters:
                continue
            if (id_, cluster) in copies.misplaced:
                continue  # it arrived, though in the wrong place
            partition, offset = copies.natives.get(id_, (-1, -1))
            if offset <= copies.highest.get((cluster, (*source, partition)), -1):
                absent = id_ not in copies.natives and source[0] in ledger.scanned_clusters
                too = ", nor where it was written" if absent else ""
                findings.add(Anomaly.LOST, f"{origin(write)}: not on {cluster} in {topic}{too}")
            else:
                missing.append(Missing(write, cluster))
    return missing


def judge_views(ledger: Ledger, routes: Routes, findings: Findings) -> None:
    """Whether a look at a running target showed part of a committed source transaction."""
    members: dict[str, set[str]] = {}
    belonging: dict[str, str] = {}
    for id_, write in ledger.writes.items():
        if write.sent.transaction is not None and write.outcome == "ok":
            members.setdefault(write.sent.transaction, set()).add(id_)
            belonging[id_] = write.sent.transaction
    for view, places in ledger.views.items():
        for cluster in sorted({place[0] for place in places}):
            topics = {place[1] for place in places if place[0] == cluster}
            shown: dict[str, set[str]] = {}
            for place, records in places.items():
                for seen in records if place[0] == cluster else ():
                    transaction = belonging.get(seen.id)
                    if transaction is not None:
                        shown.setdefault(transaction, set()).add(seen.id)
            for transaction, ids in shown.items():
                due = {
                    id_
                    for id_ in members[transaction]
                    if _is_due(ledger.writes[id_], cluster, topics, routes)
                }
                if due - ids:
                    text = f"{len(ids)} of {len(due)} records on {cluster} in view {view}"
                    findings.add(Anomaly.TORN, f"{transaction}: {text}")


def _is_due(write: Write, cluster: str, topics: set[str], routes: Routes) -> bool:
    places = routes.destinations(write.sent.cluster, write.sent.topic)
    return any(target == cluster and topic in topics for target, topic in places)


def where(seen: Seen) -> str:
    """Coordinates of a record that was seen, for examples."""
    return f"{seen.cluster}/{seen.topic}/{seen.partition}/{seen.offset}"


def origin(write: Write) -> str:
    """Coordinates of a write, for examples."""
    partition = "?" if write.partition is None else write.partition
    offset = "?" if write.offset is None else write.offset
    return f"{write.sent.id} from {write.sent.cluster}/{write.sent.topic}/{partition}/{offset}"
