"""Loading a topology file: the only place of this room that touches a disk.

Every problem of a file is found in one go: what the YAML hides is unknown, but a broken cluster does
not keep the links from being judged.
"""

import os
from dataclasses import dataclass
from pathlib import Path as FilePath

from replicator.errors import InputError
from replicator.topology.compiler.compile import compile_topology
from replicator.topology.compiler.draft import draft_of
from replicator.topology.file.salvage import salvaged_draft
from replicator.topology.file.secrets import register_secrets
from replicator.topology.file.shape import check_shape
from replicator.topology.file.source import MAX_BYTES, Source, read_source
from replicator.topology.plan import Plan
from replicator.topology.problems import FileProblem, Finding, path_text

ENVIRONMENT_VARIABLE = "REPLICATOR_TOPOLOGY"
DEFAULT_FILE = "topology.yaml"
_MISSING = f"Name the file with -f, or set {ENVIRONMENT_VARIABLE}."


@dataclass(frozen=True, slots=True)
class LoadResult:
    """The plan, None when any problem is an error; problems in the order of the file."""

    plan: Plan | None
    problems: tuple[FileProblem, ...]

    @property
    def errors(self) -> tuple[FileProblem, ...]:
        """The problems that keep the plan from being made."""
        return tuple(problem for problem in self.problems if problem.severity == "error")

    @property
    def warnings(self) -> tuple[FileProblem, ...]:
        """The problems that do not."""
        return tuple(problem for problem in self.problems if problem.severity == "warning")


class TopologyError(InputError):
    """A topology file cannot be used; `problems` holds every reason."""

    code = "TOPOLOGY"

    def __init__(self, file: str, problems: tuple[FileProblem, ...]) -> None:
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        lines = "\n".join(str(problem) for problem in problems)
        super().__init__(f"{count} in the topology\n{lines}", subject=file)
        self.problems = problems

    def paragraph(self) -> str:
        """One line per problem, as `validate` prints them."""
        return self.message.partition("\n")[2]


def topology_path(given: str | FilePath | None = None) -> FilePath:
    """Which file is meant: the one given, else $REPLICATOR_TOPOLOGY, else ./topology.yaml."""
    if given:
        return FilePath(given)
    return FilePath(os.environ.get(ENVIRONMENT_VARIABLE) or DEFAULT_FILE)


def load_plan(path: str | FilePath) -> LoadResult:
    """Reads and compiles a topology file; nothing about its content is raised.

    Raises:
        InputError: when the file itself cannot be read.
    """
    return load_text(read_file(FilePath(path)), file=str(path))


def require_plan(path: str | FilePath) -> Plan:
    """The plan of a topology file; its secrets are redacted by this process from now on.

    Raises:
        TopologyError: with every error of the file.
        InputError: when the file itself cannot be read.
    """
    result = load_plan(path)
    if result.plan is None:
        raise TopologyError(str(path), result.errors)
    register_secrets(result.plan)
    return result.plan


def load_text(text: str, *, file: str = DEFAULT_FILE) -> LoadResult:
    """Compiles the text of a topology file."""
    source = read_source(text)
    problems = [placed(finding, place, file) for finding, place in source.findings]
    plan: Plan | None = None
    if source.data is not None:
        plan, findings = _judge(source)
        problems += [
            placed(found, source.place(found.path, at_key=found.at_key), file) for found in findings
        ]
    problems.sort(key=lambda problem: (problem.line, problem.column, problem.path))
    ordered = tuple(dict.fromkeys(problems))
    broken = any(problem.severity == "error" for problem in ordered)
    return LoadResult(None if broken else plan, ordered)


def _judge(source: Source) -> tuple[Plan | None, tuple[Finding, ...]]:
    document, findings = check_shape(source.data)
    if document is not None:
        compiled = compile_topology(draft_of(document))
        return compiled.plan, compiled.findings
    draft = salvaged_draft(source.data, findings)
    if draft is None:
        return None, findings
    return None, findings + compile_topology(draft).findings


def read_file(path: FilePath, *, missing: str = _MISSING) -> str:
    """The text of a file of ours, bounded in size; ``missing`` is the remedy where there is none.

    Raises:
        InputError: when it cannot be read.
    """
    subject = str(path)
    if path.exists() and not path.is_file():
        # To open a pipe that nobody writes to would wait for ever.
        raise InputError(
            "is not a regular file",
            subject=subject,
            remedy="Write the content of a pipe to a file first.",
        )
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
        return content.decode("utf-8-sig")
    except FileNotFoundError as error:
        raise InputError("there is no such file", subject=subject, remedy=missing) from error
    except UnicodeDecodeError as error:
        raise InputError("not UTF-8 text", subject=subject, remedy="Save it as UTF-8.") from error
    except OSError as error:
        wrong = f"cannot be read ({error.strerror or error})"
        raise InputError(wrong, subject=subject, remedy="Check its rights.") from error


def placed(finding: Finding, place: tuple[int, int], file: str) -> FileProblem:
    """A finding with the place it has in a file."""
    return FileProblem(
        file=file,
        line=place[0],
        column=place[1],
        path=path_text(finding.path),
        message=finding.message,
        remedy=finding.remedy,
        severity=finding.severity,
    )
