"""What became of every key of a properties file: collected here, and never lost. Pure.

Invariant: every entry of the file has exactly one verdict, whatever the mapping forgot about it.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from replicator.mm2.properties.java_properties import Entry
from replicator.mm2.properties.unmapped import Outcome


@dataclass(frozen=True, slots=True)
class MappingVerdict:
    """One key: where it went (``to``, paths in the topology), and why not or how else.

    Values never stand in it: some of them are secrets.
    """

    line: int
    key: str
    outcome: Outcome
    to: str = ""
    reason: str = ""

    def as_json(self) -> dict[str, object]:
        """The verdict under the field names of the contract."""
        return {
            "line": self.line,
            "key": self.key,
            "verdict": self.outcome,
            "to": self.to,
            "reason": self.reason,
        }


@dataclass(slots=True)
class _Findings:
    paths: list[str] = field(default_factory=list)
    outcomes: set[Outcome] = field(default_factory=set)
    reasons: list[str] = field(default_factory=list)


class VerdictSheet:
    """Takes findings about entries, in any order and number, and makes one verdict of each entry."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._findings = {entry: _Findings() for entry in entries}

    def mapped(self, entry: Entry, path: str, note: str = "") -> None:
        """The entry stands at a path of the topology, perhaps not quite as it was."""
        if path not in self._findings[entry].paths:
            self._findings[entry].paths.append(path)
        self._note(entry, "mapped", note)

    def needless(self, entry: Entry, reason: str) -> None:
        """Nothing needs the entry."""
        self._note(entry, "not needed", reason)

    def unsupported(self, entry: Entry, reason: str) -> None:
        """What the entry asks for is not there."""
        self._note(entry, "not supported", reason)

    def add(self, entry: Entry, outcome: Outcome, text: str) -> None:
        """A finding of any kind; ``text`` is the path of a mapped one, else the reason."""
        if outcome == "mapped":
            self.mapped(entry, text)
        else:
            self._note(entry, outcome, text)

    def is_mapped(self, entry: Entry) -> bool:
        """Whether the entry stands anywhere in the topology."""
        return "mapped" in self._findings[entry].outcomes

    def open(self) -> list[Entry]:
        """Entries about which nothing was said yet."""
        return [entry for entry, found in self._findings.items() if not found.outcomes]

    def verdicts(self) -> tuple[MappingVerdict, ...]:
        """One verdict per entry, in the order of the file."""
        return tuple(
            MappingVerdict(
                line=entry.line,
                key=entry.key,
                outcome=_strongest(found.outcomes),
                to=", ".join(found.paths),
                reason="; ".join(found.reasons),
            )
            for entry, found in self._findings.items()
        )

    def _note(self, entry: Entry, outcome: Outcome, reason: str) -> None:
        found = self._findings[entry]
        found.outcomes.add(outcome)
        if reason and reason not in found.reasons:
            found.reasons.append(reason)


def _strongest(outcomes: set[Outcome]) -> Outcome:
    """What is mapped anywhere is mapped; what was forgotten is not supported."""
    order: tuple[Outcome, ...] = ("mapped", "not supported", "not needed")
    return next((outcome for outcome in order if outcome in outcomes), "not supported")
