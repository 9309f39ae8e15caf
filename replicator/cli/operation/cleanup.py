"""`cleanup`: removes what a link left on its clusters."""

from typing import TYPE_CHECKING, Annotated

import typer

from replicator.cli.options import FileOption, Output, OutputOption, YesOption
from replicator.cli.output import confirm, render, say

if TYPE_CHECKING:
    from rich.console import RenderableType

    from replicator.failover.run.cleanup import CleanupPlan


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command(rich_help_panel="Replication")(cleanup)


def cleanup(
    *,
    link: Annotated[str, typer.Option("--link", metavar="NAME", help="The link.")],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be removed; change nothing.")
    ] = False,
    lost: Annotated[
        str,
        typer.Option(
            metavar="CLUSTER",
            help="This cluster is gone for good: clean up the others without asking it.",
        ),
    ] = "",
    yes: YesOption = False,
    file: FileOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Remove what a link left on its clusters: control records, checkpoints, groups, fences.

    Use it for a link that you no longer need, while the topology file still has it
    and no worker serves it. Copies and quarantined records stay, and so does what
    other links use. Positions are gone afterwards: a link that starts again begins
    at its startFrom, and what it copied before would be copied a second time.

    It stops if a cluster does not answer. Name a cluster that was destroyed with
    --lost; that cluster must never come back under its alias.
    """
    from replicator.clock import SystemClock
    from replicator.failover.run.cleanup import clean_up, plan_cleanup
    from replicator.topology.file.load import require_plan, topology_path

    plan = require_plan(topology_path(file))
    found = plan_cleanup(plan, link, clock=SystemClock(), lost=lost)
    if dry_run:
        render(found.as_json(done=False), output, text=_text(found))
        return
    if output is Output.TEXT and not yes:
        render(found.as_json(done=False), output, text=_text(found))
    count = len(found.removable)
    if count and not confirm(
        f"Remove {count} things, with every position of link {link}"
        + (f", and never use '{lost}' again?" if lost else "?"),
        yes=yes,
    ):
        say("Nothing was removed.")
        return
    clean_up(plan, found, progress=lambda line: say(f"  {line}"))
    text = f"Removed: {count} things." if count else "Nothing is left of it."
    render(found.as_json(done=True), output, text=text)


def _text(found: "CleanupPlan") -> "RenderableType":
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    from replicator.failover.run.cleanup import ALWAYS_STAYS

    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("cluster", "kind", "what", ""):
        table.add_column(heading, overflow="fold")
    for each in found.removable:
        table.add_row(each.cluster, each.kind, each.subject, each.detail)
    stays = [f"{e.cluster}: {e.subject} ({e.detail}): {e.stays}" for e in found.found if e.stays]
    return Group(
        table if found.removable else Text("Nothing is left of it to remove."),
        Text("\nWhat stays", style="bold"),
        *(Text(f"  {line}") for line in (*stays, *ALWAYS_STAYS)),
    )
