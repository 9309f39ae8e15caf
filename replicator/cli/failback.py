"""`failback`: the lost side comes back; its unreplicated tail is salvaged first."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from replicator.cli.options import FileOption, Output, OutputOption, YesOption
from replicator.cli.pause import operator
from replicator.cli.role_change import (
    DryRunOption,
    FromOption,
    LinkOption,
    ManualFenceOption,
    ResumeOption,
    RollbackOption,
    UnreachableOption,
    carry_out,
)


class TailChoice(StrEnum):
    """What becomes of records that never reached the active side."""

    KEEP = "keep"
    INJECT = "inject"


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command(rich_help_panel="Roles")(failback)


def failback(
    *,
    link: LinkOption,
    to: Annotated[
        str | None,
        typer.Option("--to", metavar="CLUSTER", help="The side that returns; default the other."),
    ] = None,
    source: FromOption = None,
    tail: Annotated[
        TailChoice,
        typer.Option(help="Keep the tail aside in its file, or put it on the active side."),
    ] = TailChoice.KEEP,
    export: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where the tail is exported to; default here."),
    ] = None,
    switch: Annotated[
        bool, typer.Option("--switch/--no-switch", help="End with a switchover to that side.")
    ] = True,
    manual_fence: ManualFenceOption = False,
    drain_timeout: Annotated[
        float, typer.Option(min=1.0, metavar="SECONDS", help="Wait so long for lag 0, then undo.")
    ] = 60.0,
    unreachable_after: UnreachableOption = 5.0,
    dry_run: DryRunOption = False,
    resume: ResumeOption = False,
    rollback: RollbackOption = False,
    yes: YesOption = False,
    file: FileOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Bring the lost side back: salvage its tail, mirror to it, and switch over to it."""
    from replicator.failover.request import TransitionRequest

    request = TransitionRequest(
        kind="failback", link=link, to=to, source=source, by=operator(), dry_run=dry_run, manual_fence=manual_fence,
        tail="inject" if tail is TailChoice.INJECT else "keep", export=export, and_switch=switch,
        resume=resume, roll_back=rollback, drain_seconds=drain_timeout,
        unreachable_after_seconds=unreachable_after,
    )  # fmt: skip
    carry_out(request, file=file, output=output, yes=yes)
