"""`quarantine list|show|replay|discard`: records that could not be copied."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from replicator.cli.operation.pause import operator
from replicator.cli.options import FileOption, Output, OutputOption, YesOption
from replicator.cli.output import confirm, render, say
from replicator.errors import InputError, ReplicatorError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from replicator.control.operator.quarantine import Quarantined
    from replicator.topology.plan import PairPlan, Plan

FlowFilter = Annotated[
    str | None, typer.Option("--flow", metavar="'A->B'", help="Only records of this flow.")
]
Ids = Annotated[
    list[str] | None,
    typer.Argument(metavar="[ID]...", help="Ids, as `quarantine list` shows them."),
]
AllOption = Annotated[bool, typer.Option("--all", help="Every record in quarantine.")]


def register(app: typer.Typer) -> None:
    """Adds the command group."""
    group = typer.Typer(help="Inspect, replay or discard records that could not be copied.")
    group.command("list")(list_records)
    group.command("show")(show)
    group.command("replay")(replay)
    group.command("discard")(discard)
    app.add_typer(group, name="quarantine", rich_help_panel="Replication")


def list_records(
    *,
    flow: FlowFilter = None,
    settled: Annotated[
        bool, typer.Option("--settled", help="Include records that were replayed or discarded.")
    ] = False,
    file: FileOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """List the records in quarantine."""
    from replicator.control.operator.quarantine_actions import list_quarantine

    plan, pairs = _pairs(file, flow)
    result = list_quarantine(plan, pairs, settled=settled)
    render(result, output, text=_table(result["records"]))


def show(
    record_id: Annotated[str, typer.Argument(metavar="ID", help="The record.")],
    *,
    flow: FlowFilter = None,
    file: FileOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Show one record with its origin, error, key, value and headers."""
    from replicator.control.operator.quarantine_actions import show_quarantined

    plan, pairs = _pairs(file, flow)
    render(show_quarantined(plan, pairs, record_id), output)


def replay(
    ids: Ids = None,
    *,
    flow: FlowFilter = None,
    every: AllOption = False,
    yes: YesOption = False,
    file: FileOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Write records to their target topics, at the end of the log."""
    from replicator.control.operator import quarantine_actions

    def act(plan: "Plan", pair: "PairPlan", entries: "list[Quarantined]") -> dict[str, object]:
        return quarantine_actions.replay(plan, pair, entries, by=operator(), go_on=every)

    _deal("Replay", act, ids, flow=flow, every=every, yes=yes, file=file, output=output)


def discard(
    ids: Ids = None,
    *,
    flow: FlowFilter = None,
    every: AllOption = False,
    yes: YesOption = False,
    file: FileOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Discard records for good; the decision is recorded."""
    from replicator.control.operator import quarantine_actions

    def act(plan: "Plan", pair: "PairPlan", entries: "list[Quarantined]") -> dict[str, object]:
        return quarantine_actions.discard(plan, pair, entries, by=operator())

    _deal("Discard", act, ids, flow=flow, every=every, yes=yes, file=file, output=output)


def _deal(
    verb: str,
    act: "Callable[[Plan, PairPlan, list[Quarantined]], dict[str, object]]",
    ids: list[str] | None,
    *,
    flow: str | None,
    every: bool,
    yes: bool,
    file: Path | None,
    output: Output,
) -> None:
    from replicator.control.operator.quarantine import find_quarantined, read_quarantine

    if bool(ids) == every:
        raise InputError(
            "say which records", remedy="Give ids, or --all for every record in quarantine."
        )
    plan, pairs = _pairs(file, flow)
    waiting = {pair.id: read_quarantine(plan, pair) for pair in pairs}
    everything = [entry for entries in waiting.values() for entry in entries]
    chosen = (
        [entry for entry in everything if entry.outcome is None]
        if every
        else find_quarantined(everything, ids or ())
    )
    if not confirm(f"{verb} {len(chosen)} records?", yes=yes):
        say("Nothing was done.")
        return
    done: list[dict[str, object]] = []
    for pair in pairs:
        mine = [entry for entry in chosen if entry in waiting[pair.id]]
        records = act(plan, pair, mine)["records"] if mine else []
        done.extend(records if isinstance(records, list) else [])
    left = [each for each in done if each["outcome"] in {"refused", "unknown"}]
    lines = [f"{verb}: {len(done) - len(left)} records done."]
    lines += [f"{each['id']} {each['outcome']}: {each['detail']} {each['remedy']}" for each in left]
    render({"records": done}, output, text="\n".join(lines))
    if left:
        raise typer.Exit(ReplicatorError.exit_code)


def _pairs(file: Path | None, flow: str | None) -> "tuple[Plan, list[PairPlan]]":
    from replicator.control.roles.read import in_force
    from replicator.topology.file.load import require_plan, topology_path
    from replicator.topology.plan import find_pair

    plan = in_force(require_plan(topology_path(file)))
    return plan, [find_pair(plan, flow)] if flow is not None else list(plan.pairs)


def _table(records: Any) -> "RenderableType":  # noqa: ANN401 - plain JSON
    from rich.table import Table

    if not records:
        return "Nothing is in quarantine."
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("id", "flow", "record", "error"):
        table.add_column(heading, overflow="fold")
    for record in records:
        place = f"{record['topic']}/{record['partition']} at {record['offset']}"
        error = record["error"] if record["outcome"] is None else record["outcome"]
        table.add_row(record["id"], record["flow"], place, error)
    return table
