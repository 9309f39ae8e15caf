"""`groups`: where each consumer group stands on both sides, and what a move now would cost."""

import asyncio
from typing import TYPE_CHECKING, Annotated, Any

import typer

from replicator.cli.options import FileOption, Output, OutputOption
from replicator.cli.output import render, say
from replicator.errors import ReplicatorError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from replicator.clock import Clock
    from replicator.offsets.group_report import PartitionOutcome
    from replicator.offsets.translator import Translator
    from replicator.topology.plan import ClusterPlan, PairPlan, Plan

FAILED = 1


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command(rich_help_panel="Offsets")(groups)


def groups(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[GROUP]...", help="Only these groups.")
    ] = None,
    *,
    flow: Annotated[
        str | None, typer.Option("--flow", metavar="'A->B'", help="Only this flow.")
    ] = None,
    file: FileOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Show where each consumer group stands on both sides, and how exact that is.

    Asks the clusters themselves, so it works with no worker running.
    """
    from replicator.cli.translating import open_translator
    from replicator.control.pause import find_pair
    from replicator.control.role_reading import in_force
    from replicator.topology.load import require_plan, topology_path

    plan = in_force(require_plan(topology_path(file)))
    pairs = [find_pair(plan, flow)] if flow is not None else list(plan.pairs)
    found: list[dict[str, object]] = []
    problems: list[dict[str, object]] = []
    with open_translator(plan) as translator:
        for pair in pairs:
            try:
                found.extend(_survey(plan, pair, translator, names or []))
            except ReplicatorError as error:
                problems.append(
                    {
                        "code": error.code,
                        "subject": error.subject or pair.id,
                        "detail": error.message,
                        "remedy": error.remedy,
                    }
                )
    render({"groups": found, "problems": problems}, output, text=_table(found))
    for problem in problems:
        say(f"{problem['code']} {problem['subject']}: {problem['detail']}", style="red")
    if problems:
        raise typer.Exit(FAILED)


def _survey(
    plan: "Plan", pair: "PairPlan", translator: "Translator", names: list[str]
) -> list[dict[str, object]]:
    """Looks at every group of a pair; nothing is changed."""
    from replicator.cli.translating import CLIENT_ID
    from replicator.clock import SystemClock
    from replicator.errors import NotFoundError
    from replicator.identifiers import control_topic
    from replicator.kafka.compacted_log import read_compacted
    from replicator.offsets.group_report import last_synced_ms
    from replicator.offsets.group_sync import GroupSync

    clock = SystemClock()
    sync = GroupSync(plan, pair, translator=translator, clock=clock)
    report = asyncio.run(sync.run_once(commit=False, groups=names))
    try:
        topic = control_topic(plan.topology)
        records = read_compacted(pair.target, topic, client_id=CLIENT_ID)[0]
    except NotFoundError:
        records = {}
    synced_ms, failed = last_synced_ms(records, pair.source.alias)
    return [
        {
            "group": group.group,
            "flow": pair.id,
            "link": group.link,
            "state": group.state,
            "reason": group.reason,
            "lastSyncedAgeSeconds": (
                None
                if synced_ms is None or group.group in failed
                else max(0.0, clock.now() - synced_ms / 1000)
            ),
            "partitions": [
                {**partition.as_json(), **_seconds(partition, pair, translator, clock)}
                for partition in group.partitions
            ],
        }
        for group in report.groups
    ]


def _seconds(
    part: "PartitionOutcome", pair: "PairPlan", translator: "Translator", clock: "Clock"
) -> dict[str, object]:
    """How old the first unread record is on each side; None where that cannot be told."""

    def age(cluster: "ClusterPlan", topic: str, at: int | None, lag: int | None) -> float | None:
        if at is None or lag is None:
            return None
        if lag == 0:
            return 0.0
        try:
            record = translator.probe(cluster).record(topic, part.partition, at, or_next=True)
        except ReplicatorError:
            return None
        if record is None:  # nothing but markers is left
            return 0.0
        return max(0.0, clock.now() - record.timestamp()[1] / 1000)

    return {
        "sourceLagSeconds": age(pair.source, part.topic, part.source_offset, part.source_lag),
        "targetLagSeconds": age(
            pair.target, part.target_topic, part.target_offset, part.target_lag
        ),
    }


def _table(found: list[dict[str, Any]]) -> "RenderableType":
    from rich.table import Table

    if not found:
        return "No group has a position in a replicated topic."
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("group", "flow", "topic", "source", "target", "reads again", "state"):
        right = heading in {"source", "target", "reads again"}
        table.add_column(heading, overflow="fold", justify="right" if right else "left")
    for group in found:
        state = group["state"] if not group["reason"] else f"{group['state']}: {group['reason']}"
        age = group["lastSyncedAgeSeconds"]
        if group["state"] == "synced" and age is not None:
            state = f"synced {age:.0f} s ago"
        if not group["partitions"]:
            table.add_row(group["group"], group["flow"], "", "", "", "", state)
        for number, part in enumerate(group["partitions"]):
            table.add_row(
                group["group"] if number == 0 else "",
                group["flow"] if number == 0 else "",
                f"{part['topic']}/{part['partition']}",
                _place(part["sourceOffset"], part["sourceLagRecords"], part["sourceLagSeconds"]),
                _place(part["targetOffset"], part["targetLagRecords"], part["targetLagSeconds"]),
                "?" if part["grade"] == "unavailable" else f"{part['recordsReread']:,}",
                f"{state}: {part['refused']}" if part["refused"] else state,
            )
    return table


def _place(offset: int | None, lag: int | None, seconds: float | None) -> str:
    """An offset, and how far it is behind: records, and the age of the first unread one."""
    if offset is None:
        return "-"
    if not lag:
        return f"{offset:,}"
    behind = f"-{lag:,}" if seconds is None else f"-{lag:,}, {seconds:.0f} s"
    return f"{offset:,} ({behind})"
