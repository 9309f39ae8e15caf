"""From counted rows to the object of ``verify -o json``. Pure.

Least fields are those of the interface contract; what explains a count stands beside it.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from replicator.clock import json_time
from replicator.identifiers import JsonObject
from replicator.spark.compare.cases import Case
from replicator.spark.compare.fingerprint import REASONS
from replicator.spark.compare.matching import ANOMALIES

MODES = {
    "origin": "by the place that the hop header names",
    "content": "by content, between two entries of the offset map",
    "latest": "by the last value of every key",
}


@dataclass(slots=True)
class VerifyTotals:
    """Counts of one case in one hour; hashes are sums without carry over the compared records."""

    counts: dict[str, int] = field(default_factory=dict)
    excused: dict[str, int] = field(default_factory=dict)
    source_hash: int = 0
    target_hash: int = 0

    def add(self, other: "VerifyTotals") -> None:
        """Adds another one to this one."""
        for name, number in other.counts.items():
            self.counts[name] = self.counts.get(name, 0) + number
        for name, number in other.excused.items():
            self.excused[name] = self.excused.get(name, 0) + number
        self.source_hash ^= other.source_hash
        self.target_hash ^= other.target_hash

    def of(self, name: str) -> int:
        """One count."""
        return self.counts.get(name, 0)

    @property
    def clean(self) -> bool:
        """Whether nothing is wrong."""
        return not any(self.of(name) for name in ANOMALIES)

    def as_json(self) -> JsonObject:
        """The counts by name."""
        return {
            "compared": self.of("compared"),
            **{name: self.of(name) for name in ANOMALIES},
            "others": self.of("others"),
            "excused": dict(sorted(self.excused.items())),
            "sourceHash": f"{self.source_hash & (2**64 - 1):016x}",
            "targetHash": f"{self.target_hash & (2**64 - 1):016x}",
        }


TotalsByHour = Mapping[tuple[int, int], VerifyTotals]
"""By number of the case and hour (milliseconds of its start)."""


def totals_by_hour(
    rows: Iterable[Mapping[str, int | None]], wrong: Iterable[Mapping[str, int | None]]
) -> dict[tuple[int, int], VerifyTotals]:
    """Totals from counts over all rows; anomalies only from what was found wrong in the end.

    Args:
        rows: case, hour, exclusion, compared, excused, others, sourceHash, targetHash.
        wrong: case, hour, and a number for each anomaly.
    """
    found: dict[tuple[int, int], VerifyTotals] = {}
    for row in rows:
        counted = found.setdefault((row["case"] or 0, row["hour"] or 0), VerifyTotals())
        excused = row["excused"] or 0
        counted.add(
            VerifyTotals(
                {name: row[name] or 0 for name in ("compared", "others")},
                {REASONS[row["exclusion"] or 0]: excused} if excused else {},
                row["sourceHash"] or 0,
                row["targetHash"] or 0,
            )
        )
    for row in wrong:
        counted = found.setdefault((row["case"] or 0, row["hour"] or 0), VerifyTotals())
        counted.add(VerifyTotals({name: row[name] or 0 for name in ANOMALIES}))
    return found


def result_json(
    flow: str,
    cases: Sequence[Case],
    totals: TotalsByHour,
    *,
    cut_ms: int,
    seconds: float,
    report: str | None,
    first: Sequence[JsonObject] = (),
) -> JsonObject:
    """The object of ``verify -o json``.

    Args:
        flow: as people write it.
        cases: every partition that was compared.
        totals: what was found.
        cut_ms: when the positions were read that end the compared interval.
        seconds: how long it took.
        report: folder of the report, if one was written.
        first: the first differing records, as ``details.first_places`` finds them.
    """
    per_case: dict[int, VerifyTotals] = {case.number: VerifyTotals() for case in cases}
    for (number, _), hour_totals in totals.items():
        per_case[number].add(hour_totals)
    outside = sum((Counter(case.outside()) for case in cases), Counter[str]())
    total = VerifyTotals()
    for case_totals in per_case.values():
        total.add(case_totals)
    return {
        "flow": flow,
        "clean": total.clean,
        "cut": json_time(cut_ms),
        "topics": [_topic(case, per_case[case.number]) for case in cases],
        "hours": [
            _hour(cases[number], hour, hour_totals)
            for (number, hour), hour_totals in sorted(totals.items())
        ],
        "total": {**total.as_json(), "outside": dict(sorted(outside.items()))},
        "first": list(first),
        "seconds": round(seconds, 1),
        "report": report,
    }


def _topic(case: Case, totals: VerifyTotals) -> JsonObject:
    facts = case.facts
    return {
        "topic": facts.topic,
        "partition": facts.partition,
        **totals.as_json(),
        "outside": case.outside(),
        "target": facts.target_topic,
        "matched": case.mode,
        "sourceFrom": case.source_from,
        "sourceTo": case.cut,
        "targetFrom": case.target_from,
        "targetTo": case.target_to,
        "timestamps": "not compared: the target stamps"
        if facts.target.appends_time
        else "compared",
    }


def _hour(case: Case, hour: int, totals: VerifyTotals) -> JsonObject:
    return {
        "topic": case.facts.topic,
        "partition": case.facts.partition,
        "hour": json_time(hour),
        **totals.as_json(),
    }
