"""The judge of a history: pure, fast enough for half a million records, shipped to users.

It knows nothing of the product but the names of clusters and where topics belong; it reads what
was written and what the clusters hold at the end, and names every contradiction.
"""

from collections.abc import Iterable
from pathlib import Path

from replicator.testing.checker.anomalies import Anomaly, Findings, Guarantee, Report
from replicator.testing.checker.group_rules import judge_groups
from replicator.testing.checker.history import Event, read_events
from replicator.testing.checker.ledger import fold
from replicator.testing.checker.poll_rules import judge_polls
from replicator.testing.checker.read_cycles import judge_read_cycles
from replicator.testing.checker.record_rules import judge_records, judge_views
from replicator.testing.checker.role_rules import judge_promises, judge_roles
from replicator.testing.checker.routes import Naming, Routes, identity


def check(
    history: Iterable[Event] | Path,
    *,
    guarantee: Guarantee = "exactly-once",
    naming: Naming = identity,
    atomic_transactions: bool = False,
) -> Report:
    """Judges a history.

    Args:
        history: events, or a file of them.
        guarantee: under ``at-least-once`` duplicates are counted and tolerated.
        naming: names of topics on targets; ``routes.prefix`` for prefixed links.
        atomic_transactions: whether a look that shows part of a source transaction is forbidden;
            by default it is reported and tolerated, as lanes commit on their own.

    Raises:
        StoredFormatError: the file is no history of this version.
    """
    ledger = fold(read_events(history) if isinstance(history, Path) else history)
    routes = Routes(ledger.flows, naming)
    findings = Findings()
    missing = judge_records(ledger, routes, findings)
    judge_views(ledger, routes, findings)
    judge_groups(ledger, findings)
    judge_polls(ledger, findings)
    judge_read_cycles(ledger, findings)
    judge_roles(ledger, findings)
    judge_promises(ledger, missing, findings)
    tolerated = set() if atomic_transactions else {Anomaly.TORN}
    if guarantee == "at-least-once":
        tolerated.add(Anomaly.DUPLICATE)
    counts = {
        "writes": len(ledger.writes),
        "acknowledged": sum(write.outcome == "ok" for write in ledger.writes.values()),
        "unknown": sum(write.outcome == "unknown" for write in ledger.writes.values()),
        "seen": sum(map(len, ledger.seen.values())),
        "clusters": len(ledger.scanned_clusters),
        "flows": len(ledger.flows),
        "deliveries": len(ledger.group_events),
        "polled": len(ledger.polls),
    }
    return findings.report(tolerated=tolerated, counts=counts)
