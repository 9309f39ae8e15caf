"""Decides whether every acknowledged record arrived exactly once. Pure."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from replicator.demo.scenario import TOPIC, Scenario
from replicator.testing.checker.anomalies import MEANINGS, Report
from replicator.testing.checker.check import check
from replicator.testing.checker.history import Completed, Event, Seen, Sent
from replicator.testing.checker.routes import Routes


@dataclass(frozen=True, slots=True)
class Row:
    """Records of one origin in one topic of one cluster."""

    cluster: str
    topic: str
    origin: str
    acknowledged: int
    found: int


@dataclass(frozen=True, slots=True)
class DemoVerdict:
    """The counts, and the checker's report on the whole history."""

    rows: tuple[Row, ...]
    report: Report

    @property
    def clean(self) -> bool:
        """Whether nothing is wrong; an empty history is never clean."""
        return self.report.clean and bool(self.rows) and all(row.acknowledged for row in self.rows)

    def findings(self) -> list[str]:
        """One line per kind of anomaly, with examples under it."""
        lines = []
        for finding in self.report.findings:
            lines.append(f"{finding.anomaly}: {finding.count}, {MEANINGS[finding.anomaly]}")
            lines.extend(f"  {example}" for example in finding.examples)
        return lines


def judge(scenario: Scenario, events: Sequence[Event]) -> DemoVerdict:
    """Checks everything that was written and found.

    Args:
        scenario: which flows there are.
        events: of all writers and of the final scans.
    """
    report = check([*scenario.expected_flows(), *events], naming=scenario.naming)
    return DemoVerdict(tuple(_rows(scenario, events)), report)


def _rows(scenario: Scenario, events: Iterable[Event]) -> Iterable[Row]:
    origin: dict[str, str] = {}
    acknowledged: Counter[str] = Counter()
    found: Counter[tuple[str, str, str]] = Counter()
    seen: list[Seen] = []
    for event in events:
        match event:
            case Sent():
                origin[event.id] = event.cluster
            case Completed(outcome="ok"):
                acknowledged[event.id] += 1
            case Seen():
                seen.append(event)
    by_origin = Counter(origin[record_id] for record_id in acknowledged if record_id in origin)
    for each in seen:
        found[each.cluster, each.topic, origin.get(each.id, "?")] += 1
    routes = Routes(scenario.expected_flows(), scenario.naming)
    for writer in scenario.writers:
        for cluster, topic in ((writer, TOPIC), *sorted(routes.destinations(writer, TOPIC))):
            yield Row(cluster, topic, writer, by_origin[writer], found[cluster, topic, writer])
