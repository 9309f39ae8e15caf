"""The directory of reports: each carries the checksum of the one before, so a change is found.

One JSON file per report, named by its number and id, and one page beside it that is drawn from the
JSON alone. Nothing but these files is stored; a lock keeps two drills from taking the same number.
"""

import contextlib
import fcntl
import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from replicator import __version__
from replicator.errors import InputError, StoredFormatError
from replicator.redaction import redact_answer

FIRST = ""
"""What the first report carries as the checksum before it."""

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Stored:
    """One report and its files."""

    report: Json
    path: Path

    @property
    def page(self) -> Path:
        """The page that people look at."""
        return self.path.with_suffix(".html")


@dataclass(frozen=True, slots=True)
class Breach:
    """A difference between the chain and what was written."""

    file: str
    detail: str


def checksum(report: Json) -> str:
    """SHA-256 of a report without its own checksum, hexadecimal."""
    content = {name: value for name, value in report.items() if name != "checksum"}
    return hashlib.sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()


def require_writable(directory: Path) -> None:
    """Makes sure that a report can be added, before anything is broken that it would tell about.

    Raises:
        InputError: the directory cannot be written.
        StoredFormatError: what is there is no chain of reports.
    """
    with _locked(directory):
        read_all(directory)


def append(
    directory: Path, make: Callable[[str, int], Json], *, draw: Callable[[Json], str]
) -> Stored:
    """Adds a report to the chain.

    Args:
        directory: created where it is missing.
        make: given the checksum before and the number, makes the report.
        draw: makes the page of the whole report.

    Raises:
        InputError: the directory cannot be written.
        StoredFormatError: what is there is no chain of reports.
    """
    with _locked(directory):
        before = read_all(directory)
        previous = before[-1].report["checksum"] if before else FIRST
        number = len(before) + 1
        # Through JSON once: the checksum is over what will be read again.
        report: Json = redact_answer(orjson.loads(orjson.dumps(make(previous, number))))
        report["checksum"] = checksum(report)
        stored = Stored(report, directory / f"{number:04d}-{report['id']}.json")
        stored.path.write_bytes(orjson.dumps(report, option=orjson.OPT_INDENT_2) + b"\n")
        stored.page.write_text(draw(report), encoding="utf-8")
        return stored


def read_all(directory: Path) -> list[Stored]:
    """Every report, oldest first; none where there is no such directory.

    Raises:
        StoredFormatError: a file is no report.
    """
    found = []
    for path in sorted(directory.glob("*.json")):
        try:
            report = orjson.loads(path.read_bytes())
            report["id"], report["number"], report["checksum"], report["previous"]
        except (ValueError, TypeError, KeyError) as error:
            raise StoredFormatError(
                "this is no report of a drill",
                subject=str(path),
                remedy="Keep nothing else in the directory, or name another one with --reports.",
            ) from error
        found.append(Stored(report, path))
    return sorted(found, key=lambda each: int(each.report["number"]))


def find(directory: Path, wanted: str) -> Stored:
    """The report of an id, of the beginning of one, or ``last``.

    Raises:
        InputError: none or several.
    """
    reports = read_all(directory)
    if wanted == "last" and reports:
        return reports[-1]
    hits = [each for each in reports if str(each.report["id"]).startswith(wanted)]
    exact = [each for each in hits if each.report["id"] == wanted]
    if len(exact or hits) == 1:
        return (exact or hits)[0]
    wrong = f"{len(hits)} reports begin with '{wanted}'" if hits else f"no report '{wanted}'"
    raise InputError(wrong, subject=str(directory), remedy="Look at 'replicator drill list'.")


def verify(directory: Path, *, draw: Callable[[Json], str]) -> list[Breach]:
    """Every difference between the chain and what was written.

    A page is compared where this release drew it; another release may draw it differently. No chain
    can show that its last reports were removed: compare the number and checksum of the last one with a
    copy kept elsewhere (for drills on real links, the control topic has it).
    """
    breaches = []
    previous, number = FIRST, 0
    for stored in read_all(directory):
        report, name = stored.report, stored.path.name
        number += 1
        if report["checksum"] != checksum(report):
            breaches.append(Breach(name, "its content was altered: it does not match its checksum"))
        if report["number"] != number:
            breaches.append(
                Breach(name, f"it is number {report['number']}, number {number} is missing")
            )
            number = int(report["number"])
        if report["previous"] != previous:
            breaches.append(Breach(name, "the report before it was altered or removed"))
        previous = report["checksum"]
        if not stored.page.exists():
            breaches.append(Breach(stored.page.name, "the page is missing"))
        elif report.get("version") == __version__ and stored.page.read_text() != draw(report):
            breaches.append(Breach(stored.page.name, "the page does not show what the report says"))
    return breaches


@contextlib.contextmanager
def _locked(directory: Path) -> Iterator[None]:
    try:
        directory.mkdir(parents=True, exist_ok=True)
        lock = (directory / ".lock").open("w")
    except OSError as error:
        raise InputError(
            f"reports cannot be written there ({error.strerror or error})",
            subject=str(directory),
            remedy="Name a directory that you may write to with --reports.",
        ) from error
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
