"""`audit`: is everything there, and how late, by topic and span of time."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from replicator.cli.options import FileOption, FlowOption, Output, OutputOption
from replicator.cli.output import render, say_trouble
from replicator.cli.spark.closing import Closing, unless_failed
from replicator.cli.spark.spark_options import (
    ConfOption,
    ContinuousOption,
    IntervalOption,
    MasterOption,
    PropertiesOption,
    ShipOption,
    TopicsOption,
    plan_of_flow,
    spark_settings,
)

if TYPE_CHECKING:
    from rich.console import RenderableType

INCOMPLETE = 4
_SHOWN = 20


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command(rich_help_panel="History, on Spark")(audit)


def audit(
    *,
    flow: FlowOption,
    topic: TopicsOption = None,
    bucket: Annotated[
        int, typer.Option("--bucket", min=1, help="Length of an interval, in seconds.")
    ] = 3600,
    again: Annotated[
        str | None,
        typer.Option(
            "--again",
            metavar="SPAN",
            help="Count the intervals of the last SPAN (24h, 168h) again, record by record.",
        ),
    ] = None,
    continuous: ContinuousOption = False,
    interval: IntervalOption = 60.0,
    parquet: Annotated[
        str | None,
        typer.Option(
            "--parquet", metavar="DIR", help="Also write each round's rows to this directory."
        ),
    ] = None,
    keep_days: Annotated[
        int, typer.Option("--keep-days", min=1, help="Days after which an interval is deleted.")
    ] = 90,
    master: MasterOption = None,
    conf: ConfOption = None,
    properties_file: PropertiesOption = None,
    ship: ShipOption = False,
    file: FileOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Count records on both clusters by topic and interval, and show what is missing.

    Each round counts what is new; the sums are kept in a topic on the target.
    Exit code 4 when something is missing.
    """
    import contextlib

    from replicator.clock import SystemClock
    from replicator.spark.compare.facts import require_replicated
    from replicator.topology.file.load import topology_path

    span = _span(again, continuous=continuous)
    plan, pair = plan_of_flow(topology_path(file), flow)
    require_replicated(plan, pair, frozenset(topic or ()))
    from replicator.spark.audit.run import Auditor, AuditRequest
    from replicator.spark.base.continuous import continuously
    from replicator.spark.session.session import spark_session

    wanted = AuditRequest(flow, frozenset(topic or ()), bucket, parquet, keep_days)
    settings = spark_settings(master, conf, properties_file, ship=ship, pair=pair)
    closing = Closing(f"audit {flow}", output)
    complete = True
    result: Any = None
    with spark_session(settings, name=f"replicator audit {flow}") as session:
        auditor = Auditor(session, plan, wanted, clock=SystemClock())
        with contextlib.closing(auditor), contextlib.ExitStack() as ending:
            ending.push(unless_failed(lambda: _close(closing, result, parquet)))
            rounds = (
                continuously(
                    auditor.round, interval_seconds=interval, clock=SystemClock(),
                    on_failure=say_trouble,
                )
                if continuous
                else [auditor.round() if span is None else auditor.again(span)]
            )  # fmt: skip
            for result in rounds:
                render(result, output, text=_text(result))
                complete = bool(result["complete"])
    if not complete:
        raise typer.Exit(INCOMPLETE)


def _span(again: str | None, *, continuous: bool) -> float | None:
    """``--again`` in seconds.

    Raises:
        InputError: it is no span of time, or rounds are repeated, which count what is new.
    """
    from replicator.errors import InputError
    from replicator.topology.spec.units import parse_duration

    if again is None:
        return None
    if continuous:
        raise InputError("it counts once", subject="--again", remedy="Leave --continuous out.")
    try:
        return parse_duration(again)
    except ValueError as error:
        raise InputError(
            f"'{again}' is not a span of time", subject="--again", remedy="Write it as 24h or 90m."
        ) from error


def _close(closing: Closing, result: Any, parquet: str | None) -> None:  # noqa: ANN401 - plain JSON
    if result is None:
        return  # the first round failed, and its error is the last line
    lacking = sum(each["records"] for each in result["missing"])
    closing.say(
        sum(each["expected"] for each in result["topics"]),
        f"{lacking:,} missing" if lacking else "complete",
        unit="records expected",
        report=f"Rows: {parquet}" if parquet else "",
    )


def _text(result: Any) -> "RenderableType":  # noqa: ANN401 - plain JSON
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for heading in ("topic", "from"):
        table.add_column(heading, overflow="fold")
    for heading in ("expected", "found", "excused", "late", "at most"):
        table.add_column(heading, justify="right")
    for each in result["topics"][-_SHOWN:]:
        mean = each["latencyMeanMs"]
        known = mean is not None
        table.add_row(
            each["topic"], each["from"][:16].replace("T", " "), f"{each['expected']:,}",
            f"{each['found']:,}", f"{each['excused']:,}",
            f"{mean / 1000:.2f} s" if known else "?",
            f"{each['latencyMaxMs'] / 1000:.2f} s" if known else "?",
        )  # fmt: skip
    parts: list[RenderableType] = [table]
    left = len(result["topics"]) - _SHOWN
    if left > 0:
        parts.append(Text(f"… and {left} earlier intervals; -o json shows all."))
    if result["notAudited"]:
        names = ", ".join(result["notAudited"])
        parts.append(
            Text(f"Not audited, because counts cannot agree (see docs/spark.md): {names}.")
        )
    if result["complete"]:
        parts.append(Text("Complete: 100 %.", style="green"))
    parts.extend(
        Text(
            f"MISSING {each['records']:,} of {each['topic']}/{each['partition']} between "
            f"{each['from']} and {each['to']}, source offsets {each['fromOffset']:,} to "
            f"{each['toOffset']:,}.",
            style="red",
        )
        for each in result["missing"]
    )
    return Group(*parts)
