"""`stream`: a flow as a Spark Structured Streaming job."""

from typing import Annotated

import typer

from replicator.cli.options import FileOption, FlowOption
from replicator.cli.output import say
from replicator.cli.spark.closing import Closing
from replicator.cli.spark.spark_options import (
    ConfOption,
    MasterOption,
    PropertiesOption,
    ShipOption,
    plan_of_flow,
    spark_settings,
)


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command(rich_help_panel="History, on Spark")(stream)


def stream(
    *,
    flow: FlowOption,
    interval: Annotated[
        float,
        typer.Option(
            "--interval", metavar="SECONDS", min=0.1, help="Seconds from one batch to the next."
        ),
    ] = 5.0,
    release: Annotated[
        bool,
        typer.Option(
            "--release", help="Return the partitions that a crashed stream still holds, then exit."
        ),
    ] = False,
    master: MasterOption = None,
    conf: ConfOption = None,
    properties_file: PropertiesOption = None,
    ship: ShipOption = False,
    file: FileOption = None,
) -> None:
    """Run a flow on Spark instead of workers (`runtime: spark` on its link), until Ctrl-C or SIGTERM.

    When it ends, workers or another stream continue at the same record.
    """
    import threading

    from replicator.cli.operation.pause import operator
    from replicator.cli.spark.bulk_sync import applied_first
    from replicator.clock import SystemClock
    from replicator.observability.logging import configure_logging
    from replicator.topology.file.load import topology_path

    path = topology_path(file)
    plan, pair = plan_of_flow(path, flow)
    if release:
        from replicator.spark.stream.driver import release_streams

        held = release_streams(plan, pair, clock=SystemClock())
        say(f"Returned: {len(held)} partitions." if held else "No stream holds anything.")
        return
    from replicator.spark.session.java import require_spark
    from replicator.spark.session.session import spark_session
    from replicator.spark.stream.runtime import require_spark_runtime

    require_spark_runtime(pair)
    require_spark()
    from replicator.spark.stream.driver import FlowStream

    configure_logging()
    applied_first(plan, pair)
    settings = spark_settings(master, conf, properties_file, ship=ship, pair=pair)
    with spark_session(settings, name=f"replicator stream {flow}") as session:
        running = FlowStream(session, path, flow, by=operator(), clock=SystemClock())
        say(f"Spark runs {flow}; Ctrl-C ends it and releases its partitions.")
        closing = Closing(f"stream {flow}")
        try:
            running.serve(interval_seconds=interval, stopping=threading.Event())
        finally:
            records, size = running.copied
            closing.say(records, "ended, its partitions are returned" if running.returned else
                        "ended, its partitions are still assigned to it", size=size)  # fmt: skip
    say(f"{flow}: all partitions are released.")
