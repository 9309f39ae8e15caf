"""`topics`: what is replicated, from where to where."""

from typing import TYPE_CHECKING, Any

import typer

from replicator.cli.options import FileOption, OneFlowOption, Output, OutputOption
from replicator.cli.output import show_listing

if TYPE_CHECKING:
    from rich.console import RenderableType


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command(rich_help_panel="Replication")(topics)


def topics(
    *,
    flow: OneFlowOption = None,
    file: FileOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """List the replicated topics with their names on both clusters."""
    from replicator.control.roles.read import in_force
    from replicator.control.status.topics import list_topics
    from replicator.topology.file.load import require_plan, topology_path

    result = list_topics(in_force(require_plan(topology_path(file))), flow=flow)
    show_listing(result, "topics", output, text=_text)


def _text(found: list[dict[str, Any]]) -> "RenderableType":
    from rich.table import Table

    if not found:
        return "No topics are replicated yet."
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("flow", "topic", "on the target"):
        table.add_column(heading, overflow="fold")
    table.add_column("partitions", justify="right")
    for heading in ("engine", "state"):
        table.add_column(heading)
    for topic in found:
        table.add_row(
            str(topic["flow"]), str(topic["source"]), str(topic["target"]),
            str(topic["partitions"]), _engine(topic), str(topic["state"]),
        )  # fmt: skip
    return table


def _engine(topic: dict[str, Any]) -> str:
    """The engine, with what keeps whole batches away."""
    reason = topic["engineReason"]
    return f"{topic['engine']}: {reason}" if reason else str(topic["engine"])
