"""`groups`: where each consumer group stands on both sides, and what a move now would cost."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from replicator.cli.options import FileOption, OneFlowOption, Output, OutputOption
from replicator.cli.output import render, say

if TYPE_CHECKING:
    from rich.console import RenderableType

FAILED = 1


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command(rich_help_panel="Offsets")(groups)


def groups(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[GROUP]...", help="Only these groups.")
    ] = None,
    *,
    flow: OneFlowOption = None,
    file: FileOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Show each consumer group's positions on both clusters, and how exact they are.

    Reads the clusters directly: no worker needs to run.
    """
    from replicator.clock import SystemClock
    from replicator.control.roles.read import in_force
    from replicator.control.status.groups import survey_groups
    from replicator.topology.file.load import require_plan, topology_path
    from replicator.topology.plan import find_pair

    plan = in_force(require_plan(topology_path(file)))
    pairs = [find_pair(plan, flow)] if flow is not None else list(plan.pairs)
    result: dict[str, Any] = survey_groups(plan, pairs, clock=SystemClock(), groups=names or [])
    render(result, output, text=_table(result["groups"]))
    for problem in result["problems"]:
        say(f"{problem['code']} {problem['subject']}: {problem['detail']}", style="red")
    if result["problems"]:
        raise typer.Exit(FAILED)


def _table(found: list[dict[str, Any]]) -> "RenderableType":
    from rich.table import Table

    if not found:
        return "No group has a position in a replicated topic."
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("group", "flow", "topic", "source", "target", "reads again", "state"):
        right = heading in {"source", "target", "reads again"}
        table.add_column(heading, overflow="fold", justify="right" if right else "left")
    for group in found:
        state = group["state"] if not group["reason"] else f"{group['state']}: {group['reason']}"
        age = group["lastSyncedAgeSeconds"]
        if group["state"] == "synced" and age is not None:
            state = f"synced {age:.0f} s ago"
        if not group["partitions"]:
            table.add_row(group["group"], group["flow"], "", "", "", "", state)
        for number, part in enumerate(group["partitions"]):
            table.add_row(
                group["group"] if number == 0 else "",
                group["flow"] if number == 0 else "",
                f"{part['topic']}/{part['partition']}",
                _place(part["sourceOffset"], part["sourceLagRecords"], part["sourceLagSeconds"]),
                _place(part["targetOffset"], part["targetLagRecords"], part["targetLagSeconds"]),
                "?" if part["grade"] == "unavailable" else f"{part['recordsReread']:,}",
                f"{state}: {part['refused']}" if part["refused"] else state,
            )
    return table


def _place(offset: int | None, lag: int | None, seconds: float | None) -> str:
    """An offset, and how far it is behind: records, and the age of the first unread one."""
    if offset is None:
        return "-"
    if not lag:
        return f"{offset:,}"
    behind = f"-{lag:,}" if seconds is None else f"-{lag:,}, {seconds:.0f} s"
    return f"{offset:,} ({behind})"
