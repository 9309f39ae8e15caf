"""`history`: every role change and drill on record, with evidence."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from replicator.cli.options import FileOption, Output, OutputOption
from replicator.cli.output import show_listing

if TYPE_CHECKING:
    from rich.console import RenderableType

_GOOD = {"done", "pass"}


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command(rich_help_panel="Roles")(history)


def history(
    *,
    link: Annotated[str | None, typer.Option("--link", help="Only this link.")] = None,
    file: FileOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Show every role change and every drill on a real link, oldest first.

    Reads the control topics directly: no worker needs to run. A cluster that
    cannot be read is named, with exit code 1.
    """
    from replicator.failover.run.history import history
    from replicator.topology.file.load import require_plan, topology_path

    result = history(require_plan(topology_path(file)), link)
    show_listing(result, "entries", output, text=_text)


def _text(entries: Any) -> "RenderableType":  # noqa: ANN401 - plain JSON
    from rich.console import Group
    from rich.text import Text

    if not entries:
        return "No role change and no drill is on record."
    lines: list[Text] = []
    for entry in entries:
        word = entry.get("outcome") or entry.get("verdict") or ""
        style = "green" if word in _GOOD else "red"
        lines.append(
            Text.assemble(
                f"{moment(entry['at'])}  ",
                (entry["kind"], "bold"),
                f"  {entry['link']}  {_what(entry)}  ",
                (word, style),
            )
        )
        lines.extend(Text(f"  {line}") for line in _details(entry))
    return Group(*lines)


def moment(at_ms: int) -> str:
    """A time for people, in UTC."""
    return f"{datetime.fromtimestamp(at_ms / 1000, UTC):%Y-%m-%d %H:%M:%S}Z"


def _what(entry: Any) -> str:  # noqa: ANN401
    if entry["kind"] == "drill":
        return f"{entry['drill']} ({entry['flow']})"
    return f"{entry['from']} -> {entry['to']}, epoch {entry['epoch']}"


def _details(entry: Any) -> list[str]:  # noqa: ANN401
    drill = entry["kind"] == "drill"
    rto = entry.get("rtoSeconds")
    lost = entry["lostRecords"] if drill else entry["loss"]["records"]
    parts = [f"by {entry['by']}", "never ended" if rto is None else f"interrupted {rto:.1f} s"]
    if not drill and not entry["loss"].get("known", True):
        parts.append("loss not known")
    else:
        parts.append(f"{lost:,} records lost" if lost else "nothing lost")
    if drill:
        parts.append(f"{entry['rereadRecords']:,} read again")
    elif entry.get("fencing"):
        parts.append(f"fencing {entry['fencing']}")
    lines = [", ".join(parts)]
    if drill:
        lines.append(f"{entry['id']}  checksum {entry['checksum'][:16]}")
    else:
        lines.append(str(entry["id"]))
    reason = entry.get("reason") or entry.get("trouble")
    return [*lines, *([str(reason)] if reason else [])]
