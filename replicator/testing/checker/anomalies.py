"""The ways in which replication can be wrong, and the report that says which were found."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

Guarantee = Literal["exactly-once", "at-least-once"]
_MOST_EXAMPLES = 5


class Anomaly(StrEnum):
    """One word per mistake; ``MEANINGS`` says what each is."""

    LOST = "lost"
    UNSEEN_TAIL = "unseen tail"
    DUPLICATE = "duplicate"
    REORDER = "reorder"
    DIVERGENT = "divergent"
    PHANTOM = "phantom"
    ABORTED = "aborted"
    TORN = "torn"
    LOOP = "loop"
    MISROUTED = "misrouted"
    GROUP_SKIP = "group skip"
    GROUP_REWIND = "group rewind"
    POLL_SKIP = "poll skip"
    NONMONOTONIC_POLL = "nonmonotonic poll"
    INCONSISTENT = "inconsistent offset"
    CIRCULAR_READS = "circular reads"
    SPLIT_BRAIN = "split brain"
    EPOCH_REGRESSION = "epoch regression"
    LATE_ZOMBIE = "late zombie"
    FALSE_PROMISE = "false RPO/RTO"


MEANINGS: Mapping[Anomaly, str] = {
    Anomaly.LOST: "acknowledged at the source, absent on a target that holds later ones",
    Anomaly.UNSEEN_TAIL: "acknowledged at the source, later than everything the target holds",
    Anomaly.DUPLICATE: "one source record at two offsets of a target",
    Anomaly.REORDER: "first copies are in a different order from their originals",
    Anomaly.DIVERGENT: "key, value, headers, timestamp or stated origin differ from the original",
    Anomaly.PHANTOM: "a record nobody wrote, or whose write had failed",
    Anomaly.ABORTED: "a record of an aborted source transaction is visible",
    Anomaly.TORN: "a read of the target showed part of a committed source transaction",
    Anomaly.LOOP: "a record came back to its origin, or passed a cluster twice",
    Anomaly.MISROUTED: "a copy in a topic, partition or cluster the topology does not send it to",
    Anomaly.GROUP_SKIP: "a record was never delivered to a group that went on past it",
    Anomaly.GROUP_REWIND: "records behind a committed position were delivered again",
    Anomaly.POLL_SKIP: "a reader was given a later record before one that comes in between",
    Anomaly.NONMONOTONIC_POLL: "a reader was given an offset that was not after the previous one",
    Anomaly.INCONSISTENT: "a reader was given a record that is not at that offset in the final scan",
    Anomaly.CIRCULAR_READS: "transactions that read from each other before either was committed",
    Anomaly.SPLIT_BRAIN: "two clusters accepted writes, or claimed the role, in one epoch",
    Anomaly.EPOCH_REGRESSION: "a role record went back to an older epoch",
    Anomaly.LATE_ZOMBIE: "a fenced epoch still wrote after the new epoch's first write",
    Anomaly.FALSE_PROMISE: "the outcome is worse than what was printed before confirming",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One kind of anomaly.

    Attributes:
        anomaly: which.
        count: how many records (or role records, promises).
        examples: the first few, for people.
        tolerated: the guarantee allows it; it does not make the report unclean.
    """

    anomaly: Anomaly
    count: int
    examples: tuple[str, ...]
    tolerated: bool = False


@dataclass(frozen=True, slots=True)
class Report:
    """The verdict on a history.

    Attributes:
        findings: in the order of ``Anomaly``.
        clean: whether nothing was found that the guarantee forbids.
        counts: how much was looked at (``writes``, ``acknowledged``, ``seen``, ``clusters``, ...);
            a clean report over nothing is worth nothing.
    """

    findings: tuple[Finding, ...]
    clean: bool
    counts: Mapping[str, int]

    def names(self) -> tuple[str, ...]:
        """Names of what was found, tolerated or not."""
        return tuple(str(finding.anomaly) for finding in self.findings)

    def paragraph(self) -> str:
        """The verdict for a person, with examples."""
        looked = ", ".join(f"{name} {count}" for name, count in self.counts.items())
        lines = [f"{'clean' if self.clean else 'NOT CLEAN'} ({looked})"]
        for each in self.findings:
            mark = " (tolerated)" if each.tolerated else ""
            lines.append(f"{each.anomaly}: {each.count}{mark}, {MEANINGS[each.anomaly]}")
            lines.extend(f"  {example}" for example in each.examples)
        return "\n".join(lines)


class Findings:
    """Collects while rules run; keeps counts of everything and words of only a few."""

    def __init__(self) -> None:
        self._counts: dict[Anomaly, int] = {}
        self._examples: dict[Anomaly, list[str]] = {}
        self._tolerated: dict[Anomaly, bool] = {}

    def add(self, anomaly: Anomaly, example: str, *, tolerated: bool = False) -> None:
        """Adds one occurrence; an anomaly is tolerated only if every occurrence of it is."""
        self._counts[anomaly] = self._counts.get(anomaly, 0) + 1
        self._tolerated[anomaly] = self._tolerated.get(anomaly, True) and tolerated
        examples = self._examples.setdefault(anomaly, [])
        if len(examples) < _MOST_EXAMPLES:
            examples.append(example)

    def report(self, *, tolerated: Iterable[Anomaly], counts: Mapping[str, int]) -> Report:
        """Closes the collection; ``tolerated`` are those the guarantee allows as such."""
        allowed = set(tolerated)
        found = tuple(
            Finding(
                anomaly=anomaly,
                count=self._counts[anomaly],
                examples=tuple(self._examples[anomaly]),
                tolerated=anomaly in allowed or self._tolerated[anomaly],
            )
            for anomaly in Anomaly
            if anomaly in self._counts
        )
        clean = all(finding.tolerated for finding in found)
        return Report(findings=found, clean=clean, counts=dict(counts))
