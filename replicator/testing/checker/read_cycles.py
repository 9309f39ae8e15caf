"""Transactions that read from each other, in a circle (Jepsen's G1c); pure.

Only reads make an edge: a transaction that was given a record follows the transaction that wrote it. The
order of records in a log makes none. Records of transactions that run at the same time stand in any order
in each partition, so that circles of writes alone are Kafka's rule and no mistake. A circle of reads, though,
means that somebody was given a record before it was committed.
"""

from replicator.testing.checker.anomalies import Anomaly, Findings
from replicator.testing.checker.ledger import Ledger

Edges = dict[str, set[str]]
"""Transactions by the one that read from them."""


def judge_read_cycles(ledger: Ledger, findings: Findings) -> None:
    """Reports each transaction from which reads lead back to itself, once per circle."""
    edges: Edges = {}
    for polled in ledger.polls:
        write = ledger.writes.get(polled.id)
        wrote = write.sent.transaction if write is not None else None
        if polled.transaction is not None and wrote is not None and wrote != polled.transaction:
            edges.setdefault(polled.transaction, set()).add(wrote)
    for circle in _circles(edges):
        findings.add(Anomaly.CIRCULAR_READS, " read from ".join([*circle, circle[0]]))


def _circles(edges: Edges) -> list[list[str]]:
    """One circle for each knot of transactions; a walk in depth, without recursion."""
    found: list[list[str]] = []
    done: set[str] = set()
    for first in sorted(edges):
        if first in done:
            continue
        path, on_path = [first], {first}
        stack = [iter(sorted(edges[first]))]
        while stack:
            following = next(stack[-1], None)
            if following is None:
                stack.pop()
                left = path.pop()
                on_path.discard(left)
                done.add(left)
            elif following in on_path:
                found.append(path[path.index(following) :])
            elif following not in done and following in edges:
                path.append(following)
                on_path.add(following)
                stack.append(iter(sorted(edges[following])))
    return found
