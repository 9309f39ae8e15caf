"""`switchover`, `failover` and `failback`: change which cluster of a link is active."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from replicator.cli.operation.pause import operator
from replicator.cli.options import FileOption, Output, OutputOption, YesOption
from replicator.cli.roles.role_change import carry_out


class OpenTransactionsChoice(StrEnum):
    """What happens to open transactions."""

    WAIT = "wait"
    FENCE = "fence"
    REFUSE = "refuse"


LinkOption = Annotated[str, typer.Option("--link", metavar="LINK", help="The link.")]
ToOption = Annotated[
    str | None,
    typer.Option(
        "--to", metavar="CLUSTER",
        help="The cluster to become active; default: the one that is not.",
    ),
]  # fmt: skip
ReturningOption = Annotated[
    str | None,
    typer.Option(
        "--to", metavar="CLUSTER", help="The cluster that returns; default: the passive one."
    ),
]
FromOption = Annotated[
    str | None,
    typer.Option(
        "--from", metavar="CLUSTER",
        help="The cluster to leave; only on links without an active cluster.",
    ),
]  # fmt: skip
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Show every check and step; change nothing.")
]
ResumeOption = Annotated[
    bool,
    typer.Option(
        "--resume",
        help="Resume an unfinished role change; the process that runs it now is stopped.",
    ),
]
RollbackOption = Annotated[
    bool,
    typer.Option(
        "--rollback",
        help="Roll back an unfinished role change; the process that runs it now is stopped. Without one, "
        "remove a fence that was left on the active cluster.",
    ),
]
ManualFenceOption = Annotated[
    bool,
    typer.Option(
        "--manual-fence", help="Confirm that no application writes to the old active cluster."
    ),
]
OpenTransactionsOption = Annotated[
    OpenTransactionsChoice,
    typer.Option(
        "--open-transactions",
        help="Transactions that applications left open on the cluster that is left: wait for "
        "them, abort them and fence their producers, or refuse.",
    ),
]
DrainOption = Annotated[
    float,
    typer.Option(
        "--drain-timeout",
        min=1.0,
        metavar="SECONDS",
        help="How long to wait for lag 0 before rolling back.",
    ),
]
GroupsOption = Annotated[
    float,
    typer.Option(
        "--groups-timeout", min=0.0, metavar="SECONDS",
        help="How long to wait for consumer groups to read to the end.",
    ),
]  # fmt: skip
UnreachableOption = Annotated[
    float,
    typer.Option(
        "--unreachable-after", min=0.5, max=60.0, metavar="SECONDS",
        help="How long a cluster may take to answer before it counts as down.",
    ),
]  # fmt: skip


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
        bool,
        typer.Option(
            "--live-groups", help="Proceed although groups have members on the new cluster."
        ),
    ] = False,
    open_transactions: OpenTransactionsOption = OpenTransactionsChoice.WAIT,
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
    """Make the other cluster active, as planned. No record is lost.

    Fences writers, drains the lag, verifies group positions, promotes the new
    cluster and reverses the flow. If a check fails, the switchover is refused
    or rolled back.
    """
    from replicator.failover.rules.request import TransitionRequest

    request = TransitionRequest(
        kind="switchover", link=link, to=to, source=source, by=operator(), dry_run=dry_run,
        manual_fence=manual_fence, live_groups=live_groups, resume=resume, roll_back=rollback,
        open_transactions=open_transactions.value, drain_seconds=drain_timeout, groups_seconds=groups_timeout,
        unreachable_after_seconds=unreachable_after,
    )  # fmt: skip
    carry_out(request, file=file, output=output, yes=yes)


def failover(
    *,
    link: LinkOption,
    to: ToOption = None,
    source: FromOption = None,
    accept_loss: Annotated[
        bool, typer.Option("--accept-loss", help="Proceed although records will be lost.")
    ] = False,
    take_over: Annotated[
        bool, typer.Option("--take-over", help="End another unfinished transition of the link.")
    ] = False,
    unreachable_after: UnreachableOption = 5.0,
    dry_run: DryRunOption = False,
    resume: ResumeOption = False,
    yes: YesOption = False,
    file: FileOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Promote the passive cluster while the active one may be down.

    States the loss, in records and seconds per topic, before anything changes.
    """
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
        list[str] | None,
        typer.Option(
            metavar="keep|inject|TOPIC=...",
            help="Keep the unreplicated tail in its file (the default), or inject it into the active "
            "cluster; TOPIC=inject for single topics; may be given several times.",
        ),
    ] = None,
    export: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            envvar="REPLICATOR_EXPORTS",
            help="Directory for the exported tail; default: the current one.",
        ),
    ] = None,
    no_switch: Annotated[
        bool,
        typer.Option(
            "--no-switch",
            help="Stop once it mirrors; otherwise you are asked, and a switchover to it follows.",
        ),
    ] = False,
    switch: Annotated[bool, typer.Option("--switch", hidden=True)] = False,
    manual_fence: ManualFenceOption = False,
    open_transactions: OpenTransactionsOption = OpenTransactionsChoice.WAIT,
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
    """Bring a failed cluster back: export its tail, mirror to it, switch over to it."""
    from replicator.failover.rules.request import TransitionRequest, tail_choices
    from replicator.spark.archive.exported_tail import tail_to_parquet

    general, single = tail_choices(tail or ())
    request = TransitionRequest(
        kind="failback", link=link, to=to, source=source, by=operator(), dry_run=dry_run,
        manual_fence=manual_fence, tail=general, tail_topics=single,
        export=export, to_parquet=tail_to_parquet, and_switch=switch or not no_switch, resume=resume, roll_back=rollback,
        open_transactions=open_transactions.value, drain_seconds=drain_timeout, groups_seconds=groups_timeout,
        unreachable_after_seconds=unreachable_after,
    )  # fmt: skip
    carry_out(request, file=file, output=output, yes=yes)
