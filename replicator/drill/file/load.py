"""Loading a drill file: every problem at once, each with its place, as for a topology file."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path as FilePath
from typing import Any

from replicator.drill.file.document import DrillDocument
from replicator.drill.file.plan import Drill, compile_drill
from replicator.drill.file.rules import drill_findings, link_findings
from replicator.errors import InputError
from replicator.topology.file.load import placed, read_file
from replicator.topology.file.schema import Schema, tidy_schema
from replicator.topology.file.shape import check_model
from replicator.topology.file.source import read_source
from replicator.topology.plan import Plan
from replicator.topology.problems import FileProblem, Finding, Path

_MISSING = "Name an existing drill file; docs/drills.md shows one."
_SPEC: Path = ("spec",)
_FAULT: Path = ("spec", "fault")
_STAND_INS: Mapping[Path, Mapping[str, Any]] = {
    (): {"apiVersion": "replicator/v1", "kind": "Drill", "metadata": {"name": "unnamed"}},
    ("metadata",): {"name": "unnamed"},
    _SPEC: {"link": "unnamed", "kind": "network-cut", "limits": {"maxLostRecords": 0}},
}


@dataclass(frozen=True, slots=True)
class LoadedDrill:
    """The drill, None when anything is wrong; problems in the order of the file."""

    drill: Drill | None
    problems: tuple[FileProblem, ...]


class DrillFileError(InputError):
    """A drill file cannot be used; `problems` holds every reason."""

    code = "DRILL"

    def __init__(self, file: str, problems: tuple[FileProblem, ...]) -> None:
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        super().__init__(f"{count} in the drill file", subject=file)
        self.problems = problems

    def paragraph(self) -> str:
        """One line per problem, with its place."""
        return "\n".join(str(problem) for problem in self.problems)


@lru_cache(maxsize=1)
def drill_schema() -> Schema:
    """The JSON Schema of the drill file."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **tidy_schema(DrillDocument),
        "title": "Replicator drill",
    }


def load_drill(path: FilePath, *, plan: Plan | None = None) -> LoadedDrill:
    """Reads a drill file; nothing about its content is raised.

    Args:
        path: the file.
        plan: the topology it speaks of, where there is one: link and flow are looked up in it.

    Raises:
        InputError: when the file itself cannot be read.
    """
    return load_drill_text(read_file(path, missing=_MISSING), file=str(path), plan=plan)


def require_drill(path: FilePath, *, plan: Plan | None = None) -> Drill:
    """The drill of a file.

    Raises:
        DrillFileError: with every problem of the file.
        InputError: when the file itself cannot be read.
    """
    loaded = load_drill(path, plan=plan)
    if loaded.drill is None:
        raise DrillFileError(str(path), loaded.problems)
    return loaded.drill


def load_drill_text(text: str, *, file: str, plan: Plan | None = None) -> LoadedDrill:
    """Reads the text of a drill file."""
    source = read_source(text)
    problems = [placed(finding, place, file) for finding, place in source.findings]
    drill: Drill | None = None
    if source.data is not None:
        drill, findings = _judge(source.data, plan)
        problems += [
            placed(found, source.place(found.path, at_key=found.at_key), file) for found in findings
        ]
    problems.sort(key=lambda problem: (problem.line, problem.column, problem.path))
    ordered = tuple(dict.fromkeys(problems))
    return LoadedDrill(None if ordered else drill, ordered)


def _judge(data: Mapping[str, Any], plan: Plan | None) -> tuple[Drill | None, tuple[Finding, ...]]:
    document, findings = check_model(data, DrillDocument, drill_schema())
    if document is None:
        # What can be read is checked all the same, so that all problems are shown at once.
        document, broken = check_model(_mended(data, findings), DrillDocument, drill_schema())
        if document is None or broken:
            return None, findings
    further = [*drill_findings(document), *(link_findings(document, plan) if plan else ())]
    known = _paths(findings)
    blind = _FAULT if (*_SPEC, "kind") in known else ("",)  # its rules hang on the kind
    found = (
        each for each in further if each.path not in known and each.path[: len(blind)] != blind
    )
    return compile_drill(document), (*findings, *found)


def _mended(data: Mapping[str, Any], findings: tuple[Finding, ...]) -> dict[str, Any]:
    """The data less every field that a finding is about, with stand-ins for those that are needed."""
    broken = _paths(findings)

    def kept(value: object, path: Path) -> object:
        if not isinstance(value, Mapping):
            return value
        below = {
            key: kept(item, (*path, key))
            for key, item in value.items()
            if (*path, key) not in broken
        }
        return {**_STAND_INS.get(path, {}), **below}

    whole = kept(data, ())
    return whole if isinstance(whole, dict) else {}


def _paths(findings: tuple[Finding, ...]) -> set[Path]:
    return {finding.path for finding in findings}
