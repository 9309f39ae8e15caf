"""``audit --again``: the spans of a recent time counted again, record by record. Pure.

Rounds add what is new, and believe counts that agree: a duplicate hides a lost record. Counting again joins
both sides of all that the books cover of that time, and what it finds replaces the books.
"""

from collections.abc import Iterable
from dataclasses import replace

from replicator.spark.audit.ledger import Bucket, Ledger
from replicator.spark.compare.cases import Case


def cases_again(cases: Iterable[Case], ledger: Ledger) -> list[Case]:
    """The part of each comparison that the books cover already."""
    found: list[Case] = []
    for case in cases:
        held = ledger.reached.get((case.facts.topic, case.facts.partition))
        if held is None or case.mode == "latest" or case.facts.target.appends_time:
            continue
        cut = min(case.cut, held.source)
        clipped = replace(
            case, cut=cut, source_to=cut, source_from=min(case.source_from, cut),
            target_to=max(case.target_from, min(case.target_to, held.target)),
        )  # fmt: skip
        if clipped.source_from < cut:
            found.append(clipped)
    return found


def replaced(
    ledger: Ledger, buckets: Iterable[Bucket], *, from_ms: int, now_ms: int
) -> list[Bucket]:
    """Puts recounted buckets into the books; returns those that changed.

    A span of which the source's log holds fewer records than were counted once stays as it is: retention
    deleted the others, and with them what they could be compared with.
    """
    changed: list[Bucket] = []
    for each in buckets:
        held = ledger.buckets.get((each.topic, each.partition, each.at_ms))
        if each.at_ms < from_ms:
            continue  # a part of a span that begins before
        if held is not None and each.expected + each.excused < held.expected + held.excused:
            continue
        late = held or each
        bucket = replace(
            each, counted_ms=now_ms, latency_samples=late.latency_samples,
            latency_sum_ms=late.latency_sum_ms, latency_max_ms=late.latency_max_ms,
        )  # fmt: skip
        ledger.buckets[bucket.topic, bucket.partition, bucket.at_ms] = bucket
        changed.append(bucket)
    return changed
