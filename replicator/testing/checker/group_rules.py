"""Rules about consumer groups that moved between clusters; pure.

A group is judged by records, not by offsets: what it was given on any cluster counts everywhere.
"""

from bisect import bisect_left

from replicator.testing.checker.anomalies import Anomaly, Findings
from replicator.testing.checker.history import Committed, Delivered, Seen
from replicator.testing.checker.ledger import Ledger, Place, Write


class _Group:
    """What one group has been given and has settled so far."""

    def __init__(self, *, from_start: bool) -> None:
        self.from_start = from_start
        self.delivered: set[str] = set()
        self.settled: set[str] = set()
        self.positions: dict[Place, int] = {}
        self.furthest: dict[Place, int] = {}
        self.first: dict[Place, int] = {}  # per origin partition
        self.rewound: list[str] = []


def judge_groups(ledger: Ledger, findings: Findings) -> None:
    """Skips: a record passed over by a group. Rewinds: one delivered again though settled.

    Settled is what lies below a position the group committed itself. As many rewinds as the
    operator was told (``reread-records`` of the group) are tolerated; without a word, none.
    """
    groups: dict[str, _Group] = {}
    ids = {
        place: {seen.offset: seen.id for seen in records} for place, records in ledger.seen.items()
    }
    for event in ledger.group_events:
        place = (event.cluster, event.topic, event.partition)
        group = groups.get(event.group)
        if group is None:
            from_start = event.group in ledger.groups_from_start
            group = groups[event.group] = _Group(from_start=from_start)
        if isinstance(event, Committed):
            _commit(group, event, ledger, place)
        else:
            _deliver(group, event, ids.get(place, {}).get(event.offset), ledger, place)
    promised = {
        each.subject: each.value for each in ledger.promised if each.kind == "reread-records"
    }
    for name, group in groups.items():
        within = len(group.rewound) <= promised.get(name, 0)
        for example in group.rewound:
            findings.add(Anomaly.GROUP_REWIND, f"{name}: {example}", tolerated=within)
        if not within and name in promised:
            findings.add(
                Anomaly.FALSE_PROMISE,
                f"{name}: {len(group.rewound)} records re-read, {promised[name]:g} promised",
            )
        _judge_skips(name, group, ledger, findings)


def _commit(group: _Group, event: Committed, ledger: Ledger, place: Place) -> None:
    position = group.positions.get(place, 0)
    if event.offset > position:
        records = ledger.seen.get(place, [])
        first = bisect_left(records, position, key=_offset)
        beyond = bisect_left(records, event.offset, key=_offset)
        group.settled.update(seen.id for seen in records[first:beyond])
        group.positions[place] = event.offset


def _deliver(
    group: _Group, event: Delivered, id_: str | None, ledger: Ledger, place: Place
) -> None:
    group.furthest[place] = max(event.offset, group.furthest.get(place, -1))
    if id_ is None:
        return  # retention took it since
    if id_ in group.settled:
        group.rewound.append(f"{'/'.join(map(str, place))}/{event.offset} again ({id_})")
    group.delivered.add(id_)
    home, offset = _home(ledger.writes.get(id_))
    if home is not None:
        group.first[home] = min(offset, group.first.get(home, offset))


def _judge_skips(name: str, group: _Group, ledger: Ledger, findings: Findings) -> None:
    for place, furthest in group.furthest.items():
        for seen in ledger.seen.get(place, []):
            if seen.offset >= furthest or seen.id in group.delivered:
                continue
            home, offset = _home(ledger.writes.get(seen.id))
            due = group.from_start or (home is not None and offset > group.first.get(home, offset))
            if due:
                findings.add(
                    Anomaly.GROUP_SKIP,
                    f"{name}: {'/'.join(map(str, place))}/{seen.offset} ({seen.id})",
                )


def _home(write: Write | None) -> tuple[Place | None, int]:
    if write is None or write.partition is None or write.offset is None:
        return None, -1
    return (write.sent.cluster, write.sent.topic, write.partition), write.offset


def _offset(seen: Seen) -> int:
    return seen.offset
