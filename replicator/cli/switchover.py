"""`switchover`: a planned change of the active side; nothing is lost, or it is refused."""

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


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command(rich_help_panel="Roles")(switchover)


def switchover(
    *,
    link: LinkOption,
    to: Annotated[
        str | None, typer.Option("--to", metavar="CLUSTER", help="The side to be active.")
    ] = None,
    source: FromOption = None,
    manual_fence: ManualFenceOption = False,
    live_groups: Annotated[
        bool, typer.Option("--live-groups", help="Go on although groups work on the new side.")
    ] = False,
    drain_timeout: Annotated[
        float, typer.Option(min=1.0, metavar="SECONDS", help="Wait so long for lag 0, then undo.")
    ] = 60.0,
    groups_timeout: Annotated[
        float,
        typer.Option(
            min=0.0, metavar="SECONDS", help="Wait so long for groups to read to the end."
        ),
    ] = 10.0,
    unreachable_after: UnreachableOption = 5.0,
    dry_run: DryRunOption = False,
    resume: ResumeOption = False,
    rollback: RollbackOption = False,
    yes: YesOption = False,
    file: FileOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Turn a link around as planned: fence, drain, verify, promote. No record is lost."""
    from replicator.failover.request import TransitionRequest

    request = TransitionRequest(
        kind="switchover", link=link, to=to, source=source, by=operator(), dry_run=dry_run,
        manual_fence=manual_fence, live_groups=live_groups, resume=resume, roll_back=rollback,
        drain_seconds=drain_timeout, groups_seconds=groups_timeout,
        unreachable_after_seconds=unreachable_after,
    )  # fmt: skip
    carry_out(request, file=file, output=output, yes=yes)
