"""`gaps`: source records that were given up."""

from typing import TYPE_CHECKING, Any

import typer

from replicator.cli.options import FileOption, OneFlowOption, Output, OutputOption
from replicator.cli.output import show_listing

if TYPE_CHECKING:
    from rich.console import RenderableType


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command(rich_help_panel="Replication")(gaps)


def gaps(
    *,
    flow: OneFlowOption = None,
    file: FileOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """List source records that were lost before they were copied, and were given up."""
    from replicator.control.roles.read import in_force
    from replicator.control.status.gaps import list_gaps
    from replicator.topology.file.load import require_plan, topology_path

    result = list_gaps(in_force(require_plan(topology_path(file))), flow=flow)
    show_listing(result, "gaps", output, text=_text)


def _text(found: list[dict[str, Any]]) -> "RenderableType":
    from rich.table import Table

    if not found:
        return "Nothing was given up."
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("at", "flow", "partition", "offsets", "by", "what happened"):
        table.add_column(heading, overflow="fold")
    for gap in found:
        table.add_row(
            str(gap["at"]), str(gap["flow"]), f"{gap['topic']}/{gap['partition']}",
            f"{gap['from']} to {gap['to']}", str(gap["by"] or "policy"), str(gap["detail"]),
        )  # fmt: skip
    return table
