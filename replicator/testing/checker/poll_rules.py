"""Rules about what single readers were given while the system ran: in order, whole, and true; pure.

These are the questions that Jepsen's Kafka workloads ask of polls. A reader here is in no group and keeps
its partitions, so that nothing excuses a step back or a step over.
"""

from bisect import bisect_left, bisect_right

from replicator.testing.checker.anomalies import Anomaly, Findings
from replicator.testing.checker.history import Polled
from replicator.testing.checker.ledger import Ledger, Place


def judge_polls(ledger: Ledger, findings: Findings) -> None:
    """Looks at every record that a reader was given, and at the one given before it."""
    final = {
        place: {seen.offset: seen.id for seen in records} for place, records in ledger.seen.items()
    }
    offsets = {place: sorted(records) for place, records in final.items()}
    last: dict[tuple[str, Place], Polled] = {}
    for polled in ledger.polls:
        place = (polled.cluster, polled.topic, polled.partition)
        _judge_record(polled, ledger, findings)
        if polled.cluster in ledger.scanned_clusters:
            stands = final.get(place, {}).get(polled.offset)
            if stands != polled.id:
                there = f"{stands} stands there" if stands is not None else "nothing stands there"
                findings.add(Anomaly.INCONSISTENT, f"{_where(polled)}: {polled.id}, {there}")
        before = last.get((polled.reader, place))
        last[polled.reader, place] = polled
        if before is None:
            continue
        if polled.offset <= before.offset:
            text = f"{_where(polled)}: after offset {before.offset}, {_between(before, polled)}"
            findings.add(Anomaly.NONMONOTONIC_POLL, text)
            continue
        known = offsets.get(place, [])
        left_out = known[bisect_right(known, before.offset) : bisect_left(known, polled.offset)]
        if left_out:
            text = (
                f"{_where(polled)}: {len(left_out)} records from offset {left_out[0]} on were left "
                f"out, {_between(before, polled)}"
            )
            findings.add(Anomaly.POLL_SKIP, text)


def _judge_record(polled: Polled, ledger: Ledger, findings: Findings) -> None:
    write = ledger.writes.get(polled.id)
    if write is not None and write.aborted:
        findings.add(Anomaly.ABORTED, f"{_where(polled)}: of {write.sent.transaction}")
    elif write is None or write.outcome == "fail":
        findings.add(Anomaly.PHANTOM, f"{_where(polled)}: nobody wrote it, or it had failed")


def _between(before: Polled, polled: Polled) -> str:
    return "within one poll" if before.poll == polled.poll else "between two polls"


def _where(polled: Polled) -> str:
    place = f"{polled.cluster}/{polled.topic}/{polled.partition}/{polled.offset}"
    return f"{polled.reader} at {place}"
