"""`drill`: rehearsed failures with measured RTO and RPO, their reports, and the chain of these."""

import os
import signal
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from replicator.cli.operation.pause import operator
from replicator.cli.options import FileOption, Output, OutputOption, YesOption
from replicator.cli.output import confirm, render, say
from replicator.errors import InputError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from replicator.drill.report.checksum_chain import Stored
    from replicator.topology.plan import Plan

FAILED = 1
INTERRUPTED = 130
REFUSED = 3
DIFFERENT = 4
DIRECTORY_VARIABLE = "REPLICATOR_DRILLS"
DEFAULT_DIRECTORY = "drill-reports"

_LISTED = (
    "number", "id", "at", "kind", "link", "flow", "mode", "verdict", "rtoSeconds", "lostRecords",
    "lostSeconds", "rereadRecords", "skippedRecords", "checksum",
)  # fmt: skip
_DOES = {
    "worker-crash": "ends a worker",
    "network-cut": "cuts the network",
    "switchover": "changes the active cluster",
    "failover": "cuts off the active cluster",
}

ReportsOption = Annotated[
    Path | None,
    typer.Option(
        "--reports",
        metavar="DIR",
        help=f"Directory of reports; else ${DIRECTORY_VARIABLE}, else ./{DEFAULT_DIRECTORY}.",
        show_default=False,
    ),
]
DrillFile = Annotated[Path, typer.Argument(metavar="FILE", help="The drill file.")]


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    drill = typer.Typer(
        help="Rehearse failures: measure RTO and RPO, judge them, write an auditable report.",
        no_args_is_help=True,
    )
    drill.command("run")(run)
    drill.command("validate")(validate)
    drill.command("list")(list_reports)
    drill.command("report")(report)
    drill.command("verify")(verify)
    drill.command("schema")(schema)
    app.add_typer(drill, name="drill", rich_help_panel="Roles")


def run(
    drill_file: DrillFile,
    *,
    sandbox: Annotated[
        bool,
        typer.Option(
            "--sandbox", help="Run it on temporary local clusters; nothing real is touched."
        ),
    ] = False,
    yes: YesOption = False,
    reports: ReportsOption = None,
    file: FileOption = None,
    output: OutputOption = Output.TEXT,
) -> int:
    """Run a drill: traffic, a fault or role change, recovery, a verdict on every record.

    Without --sandbox it runs on the real link, with real consequences, and asks
    first. Exit code 0 only if every limit held. Ctrl-C clears the fault and
    writes a report of the aborted drill; a second Ctrl-C ends it at once.
    """
    from replicator.clock import SystemClock
    from replicator.drill.file.load import require_drill
    from replicator.drill.runner import Place, run_in_sandbox, run_on_link

    plan, original = _topology(file, needed=not sandbox)
    wanted = require_drill(drill_file, plan=plan)
    place = Place(_directory(reports), by=operator())
    clock = SystemClock()
    signal.signal(signal.SIGTERM, _interrupt)
    _only_warnings()
    if sandbox or plan is None:
        stored = run_in_sandbox(wanted, original, place=place, clock=clock, notify=_notify)
    else:
        question = f"This drill really {_DOES[wanted.kind]} of link '{wanted.link}'. Go ahead?"
        if not confirm(question, yes=yes):
            say("Nothing was changed.")
            return REFUSED
        stored = run_on_link(wanted, plan, place=place, clock=clock, notify=_notify)
    render(stored.report, output, text=_text(stored))
    if stored.report["aborted"] == "interrupt":
        return INTERRUPTED
    return 0 if stored.report["verdict"] == "pass" else FAILED


def validate(
    drill_file: DrillFile, *, file: FileOption = None, output: OutputOption = Output.TEXT
) -> None:
    """Check a drill file, and that the topology has its link and flow.

    Every problem is shown at once, with its place in the file. Exit code 2 when
    the file is wrong.
    """
    from replicator.drill.file.load import load_drill

    loaded = load_drill(drill_file, plan=_topology(file, needed=False)[0])
    if output is Output.TEXT:
        for problem in loaded.problems:
            say(str(problem), style="red")
    drill = loaded.drill
    result = {
        "file": str(drill_file),
        "valid": drill is not None,
        "name": drill.name if drill is not None else None,
        "kind": drill.kind if drill is not None else None,
        "link": drill.link if drill is not None else None,
        "drillHash": drill.hash if drill is not None else None,
        "problems": [asdict(problem) for problem in loaded.problems],
    }
    if drill is not None:
        text = f"{drill_file} is valid: {drill.kind} of link {drill.link}"
        render(result, output, text=text)
        return
    if output is not Output.TEXT:
        render(result, output)
    raise typer.Exit(InputError.exit_code)


def list_reports(*, reports: ReportsOption = None, output: OutputOption = Output.TEXT) -> None:
    """List the reports of a directory, oldest first."""
    from replicator.drill.report.checksum_chain import read_all

    found = [stored.report for stored in read_all(_directory(reports))]
    entries = [{name: each.get(name) for name in _LISTED} for each in found]
    render({"reports": entries}, output, text=_table(entries))


def report(
    wanted: Annotated[
        str, typer.Argument(metavar="ID", help="The report's id, the first part of it, or 'last'.")
    ],
    *,
    reports: ReportsOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Show one report; its HTML page is in the same directory."""
    from replicator.drill.report.checksum_chain import find

    stored = find(_directory(reports), wanted)
    render(stored.report, output, text=_text(stored))


def verify(*, reports: ReportsOption = None, output: OutputOption = Output.TEXT) -> int:
    """Check that no report was altered, replaced or removed.

    Exit code 4 when one was.
    """
    from replicator.drill.report.checksum_chain import read_all
    from replicator.drill.report.checksum_chain import verify as verify_chain
    from replicator.drill.report.page import draw_page

    directory = _directory(reports)
    breaches = verify_chain(directory, draw=draw_page)
    chain = read_all(directory)
    last = chain[-1].report["checksum"] if chain else ""
    result = {
        "directory": str(directory),
        "reports": len(chain),
        "intact": not breaches,
        "last": last,
        "breaches": [asdict(breach) for breach in breaches],
    }
    lines = [f"{breach.file}: {breach.detail}" for breach in breaches]
    whole = f"{len(chain)} reports, none was altered. Checksum of the last one:\n{last}"
    render(result, output, text="\n".join(lines) if breaches else whole)
    return DIFFERENT if breaches else 0


def schema() -> None:
    """Print the JSON Schema of the drill file."""
    import json
    import sys

    from replicator.drill.file.load import drill_schema

    sys.stdout.write(json.dumps(drill_schema(), indent=2) + "\n")


def _topology(file: Path | None, *, needed: bool) -> "tuple[Plan | None, Mapping[str, Any] | None]":
    """The plan and the document behind it; None where there is no file and none is needed."""
    from replicator.topology.file.load import read_file, require_plan, topology_path
    from replicator.topology.file.source import read_source

    path = topology_path(file)
    if not needed and file is None and not path.exists():
        return None, None
    plan = require_plan(path)
    return plan, read_source(read_file(path)).data


def _directory(given: Path | None) -> Path:
    return given or Path(os.environ.get(DIRECTORY_VARIABLE) or DEFAULT_DIRECTORY)


def _only_warnings() -> None:
    """Steps are printed as they run; log lines of the rooms below would repeat them."""
    import logging

    from replicator.observability.logging import configure_logging

    configure_logging(log_format="text")
    logging.getLogger().setLevel(logging.WARNING)


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _notify(step: str, result: str) -> None:
    say(f"{step}: {result}" if result else f"{step} ...")


def _text(stored: "Stored") -> "RenderableType":
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    one = stored.report
    passed = one["verdict"] == "pass"
    ended_early = "ABORTED" if one.get("aborted") else "FAILED"
    head = Text.assemble(
        ("PASSED" if passed else ended_early, "bold green" if passed else "bold red"),
        f"  {one['kind']} of {one['link']} ({one['flow']}), {one['mode']}",
    )
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for heading, right in (("  check", False), ("measured", True), ("limit", True), ("", False)):
        table.add_column(heading, justify="right" if right else "left", overflow="fold")
    for each in one["checks"]:
        table.add_row(
            f"  {each['check']}",
            _cell(each["measured"]),
            _cell(each["limit"]),
            Text(each["detail"] if each["ok"] else f"NOT MET {each['detail']}".strip(),
                 style="" if each["ok"] else "red"),
        )  # fmt: skip
    return Group(
        head,
        table,
        Text(f"report    {stored.path}", no_wrap=True, overflow="ignore"),
        Text(f"page      {stored.page}", no_wrap=True, overflow="ignore"),
        Text(f"checksum  {one['checksum']}", no_wrap=True, overflow="ignore"),
    )


def _table(entries: list[dict[str, Any]]) -> "RenderableType":
    from rich.table import Table

    if not entries:
        return "There are no reports yet. Run one: replicator drill run FILE --sandbox"
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for heading in ("id", "kind", "link", "verdict", "RTO s", "lost", "re-read"):
        right = heading in {"RTO s", "lost", "re-read"}
        table.add_column(heading, overflow="fold", justify="right" if right else "left")
    for each in entries:
        rto = each["rtoSeconds"]
        table.add_row(
            each["id"],
            each["kind"],
            each["link"],
            each["verdict"],
            "never" if rto is None else f"{rto:.1f}",
            str(each["lostRecords"]),
            str(each["rereadRecords"]),
        )
    return table


def _cell(value: float | None) -> str:
    return "" if value is None else f"{value:g}"
