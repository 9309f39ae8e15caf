"""`plan` and `apply`: the topology against the live clusters."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from replicator.cli.options import FileOption, Output, OutputOption, YesOption
from replicator.cli.output import confirm, render, say

if TYPE_CHECKING:
    from rich.console import RenderableType

    from replicator.control.operator.plan import Forecast

DIFFERENCES = 4
FAILED = 1
MAX_LINES = 50
MAX_GROUPS = 10
SPARK_START_SECONDS = 10.0
"""On a machine that is free; see docs/benchmarks.md."""
SPARK_FACTOR = 4
"""Cores of executors for each of the workers', as an example."""


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command(rich_help_panel="Topology")(plan)
    app.command(rich_help_panel="Topology")(apply)


def plan(
    *,
    file: FileOption = None,
    output: OutputOption = Output.TEXT,
    detailed_exitcode: Annotated[
        bool, typer.Option("--detailed-exitcode", help="Exit with 4 when there are differences.")
    ] = False,
) -> None:
    """Compare the topology with the live clusters; nothing is written."""
    from replicator.clock import SystemClock
    from replicator.control.operator.plan import forecast
    from replicator.control.roles.read import in_force
    from replicator.topology.file.load import require_plan, topology_path

    wanted = in_force(require_plan(topology_path(file)))
    found = forecast(wanted, clock=SystemClock())
    render(found.as_json(), output, text=_text(found))
    if not found.compared:
        raise typer.Exit(FAILED)
    if detailed_exitcode and found.changes:
        raise typer.Exit(DIFFERENCES)


def apply(
    *, file: FileOption = None, output: OutputOption = Output.TEXT, yes: YesOption = False
) -> None:
    """Make the changes that `plan` shows: topics, partitions, settings."""
    from replicator.clock import SystemClock
    from replicator.control.operator.apply import apply_plan, refuse_blocked
    from replicator.control.operator.plan import forecast
    from replicator.control.roles.read import in_force
    from replicator.observability.logging import configure_logging
    from replicator.topology.file.load import require_plan, topology_path

    configure_logging()
    logging.getLogger("replicator").setLevel(logging.WARNING)  # progress is told line by line
    wanted = in_force(require_plan(topology_path(file)))
    clock = SystemClock()
    found = forecast(wanted, clock=clock)
    refuse_blocked(found)
    if output is Output.TEXT and not yes:
        render(found.as_json(), output, text=_text(found))
    if found.changes and not confirm(f"Apply {len(found.changes)} changes?", yes=yes):
        say("Nothing was changed.")
        return
    done = apply_plan(wanted, clock=clock, progress=lambda line: say(f"  {line}"))
    text = (
        "Applied in part: see the problems."
        if done.problems
        else f"Applied: {len(found.changes)} changes."
    )
    render(done.as_json(), output, text=text)
    for problem in done.problems:
        say(f"{problem.code} {problem.subject}: {problem.detail}. {problem.remedy}", style="red")
    if done.problems:
        raise typer.Exit(FAILED)


def _text(found: "Forecast") -> "RenderableType":
    from rich.console import Group
    from rich.text import Text

    result = found.as_json()
    changes = _rows(result["changes"])
    parts: list[RenderableType] = []
    if changes:
        parts.append(Text(f"{len(changes)} changes", style="bold"))
        parts.append(_changes(changes))
    else:
        parts.append(
            Text("No changes: the clusters are as the topology wants them.")
            if found.compared
            else Text("Not compared: see the problems.")
        )
    seed = _rows(result["seed"])
    if seed:
        parts.extend((Text(""), _seed(seed)))
    groups = sorted({str(row["group"]) for row in _rows(result["groups"])})
    if groups:
        more = f" and {len(groups) - MAX_GROUPS} more" if len(groups) > MAX_GROUPS else ""
        parts.append(Text(f"Groups to carry over: {', '.join(groups[:MAX_GROUPS])}{more}"))
    for title, style in (("warnings", "yellow"), ("problems", "red")):
        rows = _rows(result[title])
        if rows:
            counted = f"{len(rows)} {title if len(rows) > 1 else title[:-1]}"
            parts.append(Text(f"\n{counted}", style="bold"))
            parts.extend(_paragraphs(rows, style))
    return Group(*parts)


def _rows(value: object) -> Sequence[Mapping[str, Any]]:
    return value if isinstance(value, list) else []


def _changes(changes: Sequence[Mapping[str, Any]]) -> "RenderableType":
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("cluster", "change", "what", "from", "to"):
        table.add_column(heading, overflow="fold")
    for change in changes[:MAX_LINES]:
        table.add_row(
            str(change["cluster"]), str(change["kind"]), str(change["subject"]),
            _value(change["from"]), _value(change["to"]),
        )  # fmt: skip
    if len(changes) > MAX_LINES:
        table.add_row("", f"and {len(changes) - MAX_LINES} more", "see -o json", "", "")
    return table


def _seed(seed: Sequence[Mapping[str, Any]]) -> "RenderableType":
    from rich.text import Text

    records = sum(int(item["records"]) for item in seed)
    size = sum(int(item["bytes"]) for item in seed)
    seconds = max(float(item["seconds"]) for item in seed)
    return Text(
        f"History to copy: {records:,} records of {len(seed)} topics, about {size_text(size)}, "
        f"at least {duration_text(seconds)}. {spark_text(seconds)}"
    )


def spark_text(seconds: float) -> str:
    """When Spark pays off, for history that one modest worker copies in so many seconds; by measurement."""
    if seconds < 2 * SPARK_START_SECONDS:
        return "Spark would not pay off: its start takes longer than it saves."
    faster = seconds / SPARK_FACTOR + SPARK_START_SECONDS
    return (
        f"On Spark, with {SPARK_FACTOR} times the workers' cores and no throttle: {duration_text(faster)}; "
        "on the same cores it never pays off."
    )


def _paragraphs(rows: Iterable[Mapping[str, Any]], style: str) -> "list[RenderableType]":
    from rich.text import Text

    return [
        Text.assemble(
            (f"{row['code']} {row['subject']}: ", style), f"{row['detail']}. {row['remedy']}"
        )
        for row in rows
    ]


def _value(value: object) -> str:
    return "" if value is None else str(value)


def size_text(size: float) -> str:
    """Bytes for people."""
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"


def duration_text(seconds: float) -> str:
    """Seconds for people."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 120 else f"{minutes / 60:.1f} h"
