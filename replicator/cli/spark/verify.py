"""`verify`: both sides of a flow compared record by record."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from replicator.cli.options import FileOption, FlowOption, Output, OutputOption
from replicator.cli.output import render
from replicator.cli.spark.closing import Closing, named
from replicator.cli.spark.spark_options import (
    ConfOption,
    FromOption,
    MasterOption,
    PropertiesOption,
    ShipOption,
    ToOption,
    TopicsOption,
    milliseconds,
    plan_of_flow,
    spark_settings,
)

if TYPE_CHECKING:
    from rich.console import RenderableType

DIFFERENT = 4
ANOMALIES = ("lost", "duplicated", "reordered", "changed", "foreign")


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command(rich_help_panel="History, on Spark")(verify)


def verify(
    *,
    flow: FlowOption,
    topic: TopicsOption = None,
    from_time: FromOption = None,
    to_time: ToOption = None,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report",
            metavar="DIR",
            help="Write an HTML report and the records to this directory.",
        ),
    ] = None,
    master: MasterOption = None,
    conf: ConfOption = None,
    properties_file: PropertiesOption = None,
    ship: ShipOption = False,
    file: FileOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Compare the source and target of a flow record by record.

    Finds records that are lost, duplicated, reordered, changed or foreign. Lag
    is not a difference: only what the checkpoints cover is compared. Exit code
    4 when the clusters differ.
    """
    from replicator.spark.compare.facts import require_replicated
    from replicator.topology.file.load import topology_path

    plan, pair = plan_of_flow(topology_path(file), flow)
    require_replicated(plan, pair, frozenset(topic or ()))
    from replicator.spark.session.session import spark_session
    from replicator.spark.verify.run import VerifyRequest, verify_flow

    wanted = VerifyRequest(
        flow=flow,
        topics=frozenset(topic or ()),
        from_ms=milliseconds(from_time, option="--from"),
        to_ms=milliseconds(to_time, option="--to"),
        report=report,
    )
    closing = Closing(f"verify {flow}", output)
    settings = spark_settings(master, conf, properties_file, ship=ship, pair=pair)
    with spark_session(settings, name=f"replicator verify {flow}") as session:
        result = verify_flow(session, plan, wanted)
    render(result, output, text=_text(result))
    _close(closing, result)
    if not result["clean"]:
        raise typer.Exit(DIFFERENT)


def _close(closing: Closing, result: Any) -> None:  # noqa: ANN401 - plain JSON
    total = result["total"]
    closing.say(
        total["compared"],
        "no differences" if result["clean"] else f"differences: {named(total, ANOMALIES)}",
        unit="records compared",
        report=f"Report: {result['report']}/report.html" if result["report"] else "",
    )


def _text(result: Any) -> "RenderableType":  # noqa: ANN401 - plain JSON
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column("topic/partition", overflow="fold")
    for name, short in (("compared", "compared"), *zip(ANOMALIES, _SHORT, strict=True)):
        table.add_column(short if name in ANOMALIES else name, justify="right")
    for each in result["topics"]:
        figures = [Text(f"{each[name]:,}", style="red" if each[name] else "") for name in ANOMALIES]
        table.add_row(f"{each['topic']}/{each['partition']}", f"{each['compared']:,}", *figures)
    total = result["total"]
    excluded = [f"{number:,} {reason}" for reason, number in total["excused"].items()]
    outside = [f"{number:,} {_OUTSIDE[reason]}" for reason, number in total["outside"].items()]
    parts: list[RenderableType] = [table]
    if excluded:
        parts.append(Text(f"Not on the target, as intended: {', '.join(excluded)}."))
    if outside:
        parts.append(Text(f"Not compared: {'; '.join(outside)}."))
    if result["clean"]:
        parts.append(
            Text(f"Both clusters agree: {total['compared']:,} records, in {result['seconds']} s.",
                 style="green")
        )  # fmt: skip
    else:
        wrong = ", ".join(f"{total[name]:,} {name}" for name in ANOMALIES if total[name])
        parts.append(Text(f"The clusters differ: {wrong}. The first:", style="red"))
        parts.extend(Text(f"  {_place(each)}") for each in result["first"])
    if result["report"]:
        parts.append(Text(f"The report is {result['report']}/report.html."))
    elif not result["clean"]:
        parts.append(Text("Add --report DIR for a report page and all differing records."))
    return Group(*parts)


def _place(each: Any) -> str:  # noqa: ANN401 - plain JSON
    kinds = ", ".join(each["kinds"])
    fields = f" ({', '.join(each['fields'])})" if each["fields"] else ""
    sides = [
        f"{side} {topic}/{each['partition']} offset {offset:,}"
        for side, topic, offset in (
            ("source", each["topic"], each["sourceOffset"]),
            ("target", each["target"], each["targetOffset"]),
        )
        if offset is not None
    ]
    return f"{kinds}{fields}: {', '.join(sides)}"


_OUTSIDE = {
    "lag": "not copied yet",
    "offsetMap": "before the first entry of the offset map that both logs still hold",
    "sourceRetention": "that the source's log no longer holds",
    "startFrom": "before the flow's startFrom",
    "targetRetention": "whose copies the target's retention may have deleted",
}
_SHORT = ("lost", "dupl.", "reord.", "changed", "foreign")
