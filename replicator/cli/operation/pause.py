"""`pause` and `resume`: durable, for a flow, a topic or a partition."""

import getpass
import socket
from typing import Annotated

import typer

from replicator.cli.options import FileOption, FlowOption, Output, OutputOption
from replicator.cli.output import render

TopicOption = Annotated[
    str | None, typer.Option("--topic", metavar="TOPIC", help="Only this source topic.")
]
PartitionOption = Annotated[
    int | None, typer.Option("--partition", min=0, help="Only this partition of the topic.")
]


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command(rich_help_panel="Replication")(pause)
    app.command(rich_help_panel="Replication")(resume)


def pause(
    *,
    flow: FlowOption,
    topic: TopicOption = None,
    partition: PartitionOption = None,
    file: FileOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Stop copying a flow, a topic or a partition until it is resumed."""
    from replicator.control.operator.pause import pause_flow
    from replicator.control.roles.read import in_force
    from replicator.topology.file.load import require_plan, topology_path

    plan = in_force(require_plan(topology_path(file)))
    result = pause_flow(plan, flow, topic=topic, partition=partition, by=operator())
    render(result, output, text=f"Paused: {_what(flow, topic, partition)}.")


def resume(
    *,
    flow: FlowOption,
    topic: TopicOption = None,
    partition: PartitionOption = None,
    accept_gap: Annotated[
        bool,
        typer.Option(
            "--accept-gap",
            help="Also resume partitions that stopped on lost source data; with --partition, also give up "
            "damaged records of the source that can never be read.",
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would be resumed and given up.")
    ] = False,
    file: FileOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Resume what was paused, or what stopped on lost source data."""
    from replicator.control.operator.pause import resume_flow
    from replicator.control.roles.read import in_force
    from replicator.topology.file.load import require_plan, topology_path

    plan = in_force(require_plan(topology_path(file)))
    result = resume_flow(
        plan, flow, topic=topic, partition=partition, accept_gap=accept_gap,
        dry_run=dry_run, by=operator(),
    )  # fmt: skip
    lines = []
    resumed, gaps = result["resumed"], result["gaps"]
    if isinstance(resumed, list) and resumed:
        lines.append(
            f"{'Would resume' if dry_run else 'Resumed'}: {_what(flow, topic, partition)}."
        )
    if isinstance(gaps, list):
        said = "Would accept the gap" if dry_run else "Gap accepted"
        lines.extend(
            f"{said} at {gap['topic']}/{gap['partition']}: {gap['detail']}." for gap in gaps
        )
    render(result, output, text="\n".join(lines) or "Nothing was paused there.")


def operator() -> str:
    """Who runs this command, for the journal."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = "unknown"  # a container without a user entry
    return f"{user}@{socket.gethostname()}"


def _what(flow: str, topic: str | None, partition: int | None) -> str:
    if topic is None:
        return flow
    return f"{flow} {topic}" if partition is None else f"{flow} {topic}/{partition}"
