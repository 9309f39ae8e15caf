"""`failover`: an unplanned change of the active side; the loss is stated first."""

from typing import Annotated

import typer

from replicator.cli.options import FileOption, Output, OutputOption, YesOption
from replicator.cli.pause import operator
from replicator.cli.role_change import (
    DryRunOption,
    FromOption,
    LinkOption,
    ResumeOption,
    UnreachableOption,
    carry_out,
)


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command(rich_help_panel="Roles")(failover)


def failover(
    *,
    link: LinkOption,
    to: Annotated[
        str | None, typer.Option("--to", metavar="CLUSTER", help="The side to be active.")
    ] = None,
    source: FromOption = None,
    accept_loss: Annotated[
        bool, typer.Option("--accept-loss", help="Go on although records will be missing.")
    ] = False,
    take_over: Annotated[
        bool, typer.Option("--take-over", help="End another open transition of the link.")
    ] = False,
    unreachable_after: UnreachableOption = 5.0,
    dry_run: DryRunOption = False,
    resume: ResumeOption = False,
    yes: YesOption = False,
    file: FileOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Promote the passive side while the active one may be lost; says what is lost first."""
    from replicator.failover.request import TransitionRequest

    request = TransitionRequest(
        kind="failover", link=link, to=to, source=source, by=operator(), dry_run=dry_run,
        accept_loss=accept_loss, take_over=take_over, resume=resume,
        unreachable_after_seconds=unreachable_after,
    )  # fmt: skip
    carry_out(request, file=file, output=output, yes=yes)
