"""`switchover`, `failover` and `failback`: who is active on a link, changed as planned or in need."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from replicator.cli.options import FileOption, Output, OutputOption, YesOption
from replicator.cli.pause import operator
from replicator.cli.role_change import carry_out

LinkOption = Annotated[str, typer.Option("--link", metavar="LINK", help="The link to turn.")]
ToOption = Annotated[
    str | None, typer.Option("--to", metavar="CLUSTER", help="The side to be active.")
]
ReturningOption = Annotated[
    str | None,
    typer.Option("--to", metavar="CLUSTER", help="The side that returns; default the other."),
]
FromOption = Annotated[
    str | None,
    typer.Option(
        "--from", metavar="CLUSTER",
        help="The side that is left; only on links of several sides without an active one.",
    ),
]  # fmt: skip
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Show every check and step; nothing is changed.")
]
ResumeOption = Annotated[
    bool, typer.Option("--resume", help="Go on with an open one; fences whoever runs it.")
]
RollbackOption = Annotated[
    bool, typer.Option("--rollback", help="Take an open one back; fences whoever runs it.")
]
ManualFenceOption = Annotated[
    bool,
    typer.Option("--manual-fence", help="State that writers are off the side that gives up."),
]
DrainOption = Annotated[
    float,
    typer.Option(
        "--drain-timeout", min=1.0, metavar="SECONDS", help="Wait so long for lag 0, then undo."
    ),
]
GroupsOption = Annotated[
    float,
    typer.Option(
        "--groups-timeout", min=0.0, metavar="SECONDS",
        help="Wait so long for groups to read to the end.",
    ),
]  # fmt: skip
UnreachableOption = Annotated[
    float,
    typer.Option(
        "--unreachable-after", min=0.5, max=60.0, metavar="SECONDS",
        help="How long a side may take to answer before it counts as gone.",
    ),
]  # fmt: skip


class TailChoice(StrEnum):
    """What becomes of records that never reached the active side."""

    KEEP = "keep"
    INJECT = "inject"


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    for command in (switchover, failover, failback):
        app.command(rich_help_panel="Roles")(command)


def switchover(
    *,
    link: LinkOption,
    to: ToOption = None,
    source: FromOption = None,
    manual_fence: ManualFenceOption = False,
    live_groups: Annotated[
        bool, typer.Option("--live-groups", help="Go on although groups work on the new side.")
    ] = False,
    drain_timeout: DrainOption = 60.0,
    groups_timeout: GroupsOption = 10.0,
    unreachable_after: UnreachableOption = 5.0,
    dry_run: DryRunOption = False,
    resume: ResumeOption = False,
    rollback: RollbackOption = False,
    yes: YesOption = False,
    file: FileOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Turn a link around as planned: fence, drain, verify, promote. No record is lost."""
    from replicator.failover.rules.request import TransitionRequest

    request = TransitionRequest(
        kind="switchover", link=link, to=to, source=source, by=operator(), dry_run=dry_run,
        manual_fence=manual_fence, live_groups=live_groups, resume=resume, roll_back=rollback,
        drain_seconds=drain_timeout, groups_seconds=groups_timeout,
        unreachable_after_seconds=unreachable_after,
    )  # fmt: skip
    carry_out(request, file=file, output=output, yes=yes)


def failover(
    *,
    link: LinkOption,
    to: ToOption = None,
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
    from replicator.failover.rules.request import TransitionRequest

    request = TransitionRequest(
        kind="failover", link=link, to=to, source=source, by=operator(), dry_run=dry_run,
        accept_loss=accept_loss, take_over=take_over, resume=resume,
        unreachable_after_seconds=unreachable_after,
    )  # fmt: skip
    carry_out(request, file=file, output=output, yes=yes)


def failback(
    *,
    link: LinkOption,
    to: ReturningOption = None,
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
    drain_timeout: DrainOption = 60.0,
    groups_timeout: GroupsOption = 10.0,
    unreachable_after: UnreachableOption = 5.0,
    dry_run: DryRunOption = False,
    resume: ResumeOption = False,
    rollback: RollbackOption = False,
    yes: YesOption = False,
    file: FileOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Bring the lost side back: salvage its tail, mirror to it, and switch over to it."""
    from replicator.failover.rules.request import TransitionRequest
    from replicator.spark.archive.exported_tail import tail_to_parquet

    request = TransitionRequest(
        kind="failback", link=link, to=to, source=source, by=operator(), dry_run=dry_run,
        manual_fence=manual_fence, tail="inject" if tail is TailChoice.INJECT else "keep",
        export=export, to_parquet=tail_to_parquet, and_switch=switch, resume=resume, roll_back=rollback,
        drain_seconds=drain_timeout, groups_seconds=groups_timeout,
        unreachable_after_seconds=unreachable_after,
    )  # fmt: skip
    carry_out(request, file=file, output=output, yes=yes)
