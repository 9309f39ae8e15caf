"""`status`: lag, rates, states and problems, with or without workers."""

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from replicator.cli.options import FileOption, OneFlowOption, Output, OutputOption
from replicator.cli.output import out, render
from replicator.errors import InputError
from replicator.redaction import redact_answer

if TYPE_CHECKING:
    from rich.console import RenderableType

    from replicator.topology.plan import Plan

STYLES = {
    "replicating": "green",
    "seeding": "cyan",
    "draining": "cyan",
    "paused": "yellow",
    "waiting": "yellow",
    "stopped": "red",
    "failed": "red",
}


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command(rich_help_panel="Replication")(status)


def status(
    *,
    flow: OneFlowOption = None,
    detail: Annotated[
        bool, typer.Option("--detail", help="Show every partition and worker.")
    ] = False,
    watch: Annotated[bool, typer.Option("--watch", help="Refresh until Ctrl-C.")] = False,
    interval: Annotated[
        float,
        typer.Option("--interval", min=0.5, help="Seconds between two refreshes with --watch."),
    ] = 2.0,
    file: FileOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Show lag in records and seconds, rates, states and problems.

    Reads the clusters and control topics directly: no worker needs to run.
    """
    from replicator.control.roles.read import in_force
    from replicator.control.status.collect import collect_status
    from replicator.topology.file.load import require_plan, topology_path
    from replicator.topology.plan import find_pair

    plan = in_force(require_plan(topology_path(file)))
    wanted = str(find_pair(plan, flow).id) if flow is not None else None
    if not watch:
        result = collect_status(plan, flow=wanted)
        render(result, output, text=_text(result, detail=detail))
        return
    if output is Output.YAML:
        raise InputError("--watch prints text or json lines", remedy="Use -o json.")
    _watch(plan, wanted, output=output, detail=detail, interval_seconds=interval)


def _watch(
    plan: "Plan", flow: str | None, *, output: Output, detail: bool, interval_seconds: float
) -> None:
    import json

    from rich.live import Live

    from replicator.clock import SystemClock
    from replicator.control.status.collect import collect_status

    clock = SystemClock()
    if output is Output.JSON:
        while True:
            sys.stdout.write(json.dumps(redact_answer(collect_status(plan, flow=flow))) + "\n")
            sys.stdout.flush()
            clock.sleep(interval_seconds)
    with Live(console=out(), auto_refresh=False) as live:
        while True:
            live.update(_text(collect_status(plan, flow=flow), detail=detail), refresh=True)
            clock.sleep(interval_seconds)


def _text(result: Any, *, detail: bool) -> "RenderableType":  # noqa: ANN401 - plain JSON
    from rich.console import Group
    from rich.text import Text

    parts: list[RenderableType] = [
        Text(_role(link))
        for link in result["links"]
        if link["epoch"] or link["state"] != "mirroring"
    ]
    for number, flow in enumerate(result["flows"]):
        if number:
            parts.append(Text(""))
        parts.extend(_flow(flow, detail=detail))
    if not parts:
        parts.append(Text("The topology has no flows."))
    return Group(*parts)


def _role(link: Any) -> str:  # noqa: ANN401
    """A link whose roles have changed, or are about to."""
    return (
        f"link {link['link']}: {link['active']} is active in epoch {link['epoch']}, {link['state']}"
    )


def _engine(flow: Any) -> str:  # noqa: ANN401
    """How records are copied, and what keeps whole batches away; a worker of an older release is silent."""
    engine, reason = flow.get("engine", ""), flow.get("engineReason", "")
    return f"engine {engine}: {reason}" if reason else f"engine {engine}" if engine else ""


def _lanes(lanes: Any) -> str:  # noqa: ANN401
    """How many there are, and why it is so many."""
    if lanes["changing"]:
        return f"{lanes['count']} lanes, just now being laid out: {lanes['reason']}"
    told = f" since {lanes['since']} ({lanes['reason']})" if lanes["since"] else ""
    return f"{lanes['count']} lanes{told}"


def _worker(worker: Any) -> str:  # noqa: ANN401
    """Which lanes it has, and what they may hold; a worker of an older release does not say it."""
    from replicator.policy.capacity.memory_shares import shown_bytes

    lanes = ", ".join(str(lane) for lane in worker["lanes"])
    memory = worker.get("memory")
    if memory is None:
        return f"{worker['id']}: lanes {lanes}"
    limit = memory["limitBytes"]
    return (
        f"{worker['id']}: lanes {lanes}, {shown_bytes(memory['laneBytes'])} of records each, "
        f"{shown_bytes(memory['recordsBytes'])} in all, "
        f"{'no limit' if limit is None else f'limit {shown_bytes(limit)}'}"
    )


def _flow(flow: Any, *, detail: bool) -> "list[RenderableType]":  # noqa: ANN401
    from rich.text import Text

    style = STYLES.get(flow["state"], "")
    head = Text.assemble(
        (flow["flow"], "bold"), f"  {flow['link']}  ", (flow["state"], style), f"  {flow['reason']}"
    )
    figures = Text(
        f"  lag {_number(flow['lagRecords'])} records, {_seconds(flow['lagSeconds'])}   "
        f"{flow['recordsPerSecond']:,.0f} records/s, {_rate(flow['bytesPerSecond'])}   "
        f"{len(flow['workers'])} workers   {_engine(flow)}"
    )
    parts: list[RenderableType] = [head, figures]
    lanes = flow.get("lanes")
    if lanes is not None and (detail or lanes["changing"]):
        parts.append(Text(f"  {_lanes(lanes)}"))
    if detail:
        parts.extend(Text(f"  {_worker(worker)}") for worker in flow["workers"])
    if flow["topics"]:
        parts.append(_topics(flow["topics"], detail=detail))
    parts.extend(
        Text.assemble(
            (f"  {problem['code']} ", "red"),
            f"{problem['subject']}: {problem['detail']}. {problem['remedy']}",
        )
        for problem in flow["problems"]
    )
    return parts


def _topics(topics: Any, *, detail: bool) -> "RenderableType":  # noqa: ANN401
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("  topic", overflow="fold")
    table.add_column("target", overflow="fold")
    table.add_column("state")
    table.add_column("lag", justify="right")
    table.add_column("behind", justify="right")
    for topic in topics:
        partitions = topic["partitions"]
        states = sorted({partition["state"] for partition in partitions})
        lags = [partition["lagSeconds"] for partition in partitions]
        known = [lag for lag in lags if lag is not None]
        table.add_row(
            f"  {topic['source']} ({len(partitions)})",
            topic["target"],
            "/".join(states),
            f"{sum(partition['lagRecords'] or 0 for partition in partitions):,}",
            _seconds(max(known) if known else None),
        )
        for partition in partitions if detail else ():
            table.add_row(
                f"    {partition['partition']}",
                f"at {_number(partition['position'])} of {_number(partition['sourceEnd'])}",
                partition["state"],
                _number(partition["lagRecords"]),
                _seconds(partition["lagSeconds"]),
            )
    return table


def _number(value: int | None) -> str:
    return "?" if value is None else f"{value:,}"


def _seconds(value: float | None) -> str:
    if value is None:
        return "? s"
    return f"{value:.1f} s" if value < 120 else f"{value / 60:.0f} min"


def _rate(value: float) -> str:
    for unit in ("B/s", "kB/s", "MB/s"):
        if value < 1000:
            return f"{value:.0f} {unit}"
        value /= 1000
    return f"{value:.1f} GB/s"
