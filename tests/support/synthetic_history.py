"""Histories of replication that worked, made up: what the checker is tested and measured with.

Seeded and without any cluster. Plant a mistake in one and the checker must name it; leave it alone
and the checker must find nothing.
"""

import random
from dataclasses import dataclass
from typing import Literal

from replicator.testing.checker.history import (
    FINAL,
    Committed,
    Completed,
    Delivered,
    Event,
    Flow,
    GroupStarted,
    Outcome,
    Role,
    Scanned,
    Seen,
    Sent,
    TransactionEnded,
)
from replicator.testing.checker.routes import Naming, identity, prefix

Shape = Literal["active-passive", "active-active", "hub-and-spoke", "ring"]
TOPIC = "orders"
GROUP = "billing"
LINK = "orders-dr"

_FLOWS: dict[Shape, tuple[Flow, ...]] = {
    "active-passive": (Flow("east", "west", relay=False),),
    "active-active": (Flow("east", "west", relay=False), Flow("west", "east", relay=False)),
    "hub-and-spoke": (Flow("east", "central", relay=False), Flow("west", "central", relay=False)),
    "ring": (
        Flow("east", "west", relay=True),
        Flow("west", "central", relay=True),
        Flow("central", "east", relay=True),
    ),
}
NAMINGS: dict[Shape, Naming] = {
    "active-passive": identity,
    "active-active": identity,
    "hub-and-spoke": prefix,
    "ring": identity,
}


@dataclass(slots=True)
class _Log:
    """The partitions of all clusters while they fill."""

    seen: list[Seen]
    ends: dict[tuple[str, str, int], int]

    def append(self, sent: Sent, *, cluster: str, topic: str, partition: int, hops: str) -> int:
        place = (cluster, topic, partition)
        offset = self.ends.get(place, 0)
        self.ends[place] = offset + 1
        record = Seen(
            view=FINAL,
            cluster=cluster,
            topic=topic,
            partition=partition,
            offset=offset,
            id=sent.id,
            key=sent.key,
            value=sent.value,
            headers=sent.headers,
            timestamp_ms=sent.timestamp_ms,
            hops=hops,
        )
        self.seen.append(record)
        return offset


def clean_history(
    shape: Shape = "active-passive",
    *,
    records: int = 200,
    partitions: int = 3,
    seed: int = 0,
    header: bool = True,
    transactional: bool = True,
) -> list[Event]:
    """A history in which nothing went wrong, though writers failed, aborted and lost contact.

    Args:
        shape: which clusters copy to which.
        records: how many are sent in all.
        partitions: of the topic.
        seed: same seed, same history.
        header: whether copies carry hops (the batches engine adds none).
        transactional: whether some writes are in transactions, some of them aborted.
    """
    draw = random.Random(seed)
    flows = _FLOWS[shape]
    sources = sorted({flow.source for flow in flows})
    log = _Log(seen=[], ends={})
    events: list[Event] = [*flows, GroupStarted(GROUP)]
    ended: dict[str, Outcome] = {}
    for number in range(records):
        sent = _sent(draw, number, draw.choice(sources), partitions, transactional=transactional)
        events.append(sent)
        outcome: Outcome = draw.choices(("ok", "fail", "unknown"), (94, 3, 3))[0]
        if sent.transaction is not None:
            committed: Outcome = "fail" if draw.random() < 0.2 else "ok"
            ended.setdefault(sent.transaction, committed)
        happened = outcome == "ok" or (outcome == "unknown" and draw.random() < 0.5)
        kept = happened and ended.get(sent.transaction or "", "ok") == "ok"
        offset = None
        if kept:
            offset = _append_everywhere(log, sent, flows, NAMINGS[shape], header=header)
        elif outcome == "ok":  # of an aborted transaction: acknowledged, then taken back
            place = (sent.cluster, TOPIC, sent.partition or 0)
            offset = log.ends.get(place, 0)
            log.ends[place] = offset + 1
        if outcome != "unknown" or draw.random() < 0.5:  # else the writer died before it knew
            known = offset if outcome == "ok" else None
            events.append(Completed(sent.id, outcome, sent.partition, known, sent.at + 0.01))
    events += [TransactionEnded(name, outcome) for name, outcome in ended.items()]
    events += _group(log.seen, sources[0])
    if shape == "active-passive":
        events += [Role(LINK, each, 1, "east", (), -1.0) for each in ("east", "west")]
    clusters = sorted({flow.source for flow in flows} | {flow.target for flow in flows})
    events += [
        Scanned(FINAL, cluster, TOPIC, partition, 0, log.ends.get((cluster, TOPIC, partition), 0))
        for cluster in clusters
        for partition in range(partitions)
    ]
    return events + list(log.seen)


def _sent(
    draw: random.Random, number: int, cluster: str, partitions: int, *, transactional: bool
) -> Sent:
    transaction = None
    if transactional and draw.random() < 0.3:
        transaction = f"{cluster}-{number // 20}"
    return Sent(
        id=f"{cluster}-{number}",
        cluster=cluster,
        topic=TOPIC,
        partition=draw.randrange(partitions),
        key=draw.choice((None, f"{draw.getrandbits(64):016x}")),
        value=draw.choice((None, f"{draw.getrandbits(64):016x}")),
        headers=draw.choice(("", f"{draw.getrandbits(64):016x}")),
        timestamp_ms=1_700_000_000_000 + number,
        transaction=transaction,
        epoch=None,
        at=float(number),
    )


def _append_everywhere(
    log: _Log, sent: Sent, flows: tuple[Flow, ...], naming: Naming, *, header: bool
) -> int:
    """Appends at home and at every station the flows lead to; returns the offset at home."""
    partition = sent.partition or 0
    native = log.append(sent, cluster=sent.cluster, topic=TOPIC, partition=partition, hops="")
    stations: list[tuple[str, str, int, str, tuple[str, ...]]] = [
        (sent.cluster, TOPIC, native, "", (sent.cluster,))
    ]
    while stations:
        cluster, topic, offset, hops, passed = stations.pop(0)
        for flow in flows:
            direct = len(passed) == 1
            if flow.source != cluster or flow.target in passed or not (direct or flow.relay):
                continue
            name = naming(cluster, topic, flow.target) or topic
            path = f"{hops} {cluster}/{topic}/{partition}/{offset}".strip()
            shown = path if header else ""
            copied = log.append(
                sent, cluster=flow.target, topic=name, partition=partition, hops=shown
            )
            stations.append((flow.target, name, copied, path, (*passed, flow.target)))
    return native


def _group(seen: list[Seen], cluster: str) -> list[Event]:
    """A group that reads one cluster to its end and commits now and then."""
    events: list[Event] = []
    for number, record in enumerate(each for each in seen if each.cluster == cluster):
        place = (GROUP, record.cluster, record.topic, record.partition)
        events.append(Delivered(*place, record.offset))
        if number % 10 == 9:
            events.append(Committed(*place, record.offset + 1))
    return events
