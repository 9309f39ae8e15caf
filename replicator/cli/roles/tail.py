"""`tail`: what to do later with a tail that a failback exported."""

from pathlib import Path
from typing import Annotated

import typer

from replicator.cli.options import FileOption, Output, OutputOption, YesOption
from replicator.cli.output import confirm, render


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    tail = typer.Typer(no_args_is_help=True, help="Use a tail that a failback exported.")
    app.add_typer(tail, name="tail", rich_help_panel="Roles")
    tail.command("inject")(inject)


def inject(
    export: Annotated[Path, typer.Argument(metavar="EXPORT", help="The exported .jsonl file.")],
    *,
    link: Annotated[str, typer.Option("--link", metavar="LINK", help="The link.")],
    topic: Annotated[
        list[str] | None,
        typer.Option("--topic", metavar="T", help="Only this topic; may be repeated."),
    ] = None,
    yes: YesOption = False,
    file: FileOption = None,
    output: OutputOption = Output.TEXT,
) -> int:
    """Inject an exported tail into the cluster that never received it.

    Each record is written once, even after an interruption or if the failback
    injected a part of the tail; its origin is in replicator-hops.
    """
    from replicator.failover.run.late_tail import inject_export, read_exported
    from replicator.topology.file.load import require_plan, topology_path

    plan = require_plan(topology_path(file))
    records = read_exported(export, topics=topic)
    late = inject_export(plan, link, export, records, confirmed=lambda text: confirm(text, yes=yes))
    text = (
        f"{late.injected} records were injected into {late.cluster}, {late.before} were there already, "
        f"{late.kept} cannot be written unchanged"
        if late.confirmed else "not confirmed: nothing was changed"
    )  # fmt: skip
    render(late.as_json(), output, text=text)
    return 0 if late.confirmed else 3
