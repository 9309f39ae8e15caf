"""`archive` and `restore`: topics to Parquet and back."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from replicator.cli.options import FileOption, Output, OutputOption
from replicator.cli.output import render, say, say_trouble
from replicator.cli.spark.closing import Closing, unless_failed
from replicator.cli.spark.spark_options import (
    ConfOption,
    ContinuousOption,
    FromOption,
    IntervalOption,
    MasterOption,
    PropertiesOption,
    ShipOption,
    ToOption,
    milliseconds,
    spark_settings,
)
from replicator.errors import InputError

if TYPE_CHECKING:
    from replicator.topology.plan import ClusterPlan, Plan

LOST = 1
FolderOption = Annotated[
    str,
    typer.Option(
        "--archive", metavar="DIR", help="The archive: a path, or a URL that Spark can open."
    ),
]
ClusterOption = Annotated[
    str, typer.Option("--cluster", metavar="ALIAS", help="The cluster of the topology.")
]


def register(app: typer.Typer) -> None:
    """Adds both commands."""
    app.command(rich_help_panel="History, on Spark")(archive)
    app.command(rich_help_panel="History, on Spark")(restore)


def archive(
    *,
    cluster: ClusterOption,
    folder: FolderOption,
    topic: Annotated[
        list[str],
        typer.Option(
            "--topic", metavar="TOPIC", help="A topic, a glob or regex:PATTERN; may be repeated."
        ),
    ],
    continuous: ContinuousOption = False,
    interval: IntervalOption = 60.0,
    compact: Annotated[
        bool, typer.Option("--compact", help="Only merge the many small files into a few.")
    ] = False,
    form: Annotated[
        Literal["parquet", "delta"] | None,
        typer.Option(
            "--format",
            help="delta: keep a Delta log beside the manifest, for Trino and others; default: what the archive has.",
        ),
    ] = None,
    master: MasterOption = None,
    conf: ConfOption = None,
    properties_file: PropertiesOption = None,
    ship: ShipOption = False,
    file: FileOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Write topics to Parquet: every field, every record exactly once.

    Continues where the archive ends. Run it as often as you like, or once with
    --continuous.
    """
    import contextlib

    from replicator.clock import SystemClock
    from replicator.spark.archive.source import Source, require_topics
    from replicator.spark.archive_files.delta import require_delta
    from replicator.topology.file.load import require_plan, topology_path

    path = topology_path(file)
    plan = require_plan(path)
    read = _cluster(plan, cluster)
    source = Source(read, str(path.resolve()), tuple(topic))
    if form == "delta":
        require_delta(folder)
    require_topics(source)
    from replicator.spark.archive.write import Archiver
    from replicator.spark.base.continuous import continuously
    from replicator.spark.session.session import spark_session

    closing = Closing(f"archive {cluster}", output)
    settings = spark_settings(master, conf, properties_file, ship=ship, clusters=(read,))
    with (
        spark_session(settings, name=f"replicator archive {cluster}") as session,
        contextlib.ExitStack() as ending,
    ):
        archiver = Archiver(
            session,
            source,
            folder,
            clock=SystemClock(),
            as_delta=None if form is None else form == "delta",
        )
        if archiver.swept:
            say(f"Deleted {archiver.swept} unfinished files of an interrupted command.")
        if compact:
            _show_compaction(archiver.compact(), output)
            return
        rounds = (
            continuously(
                archiver.tidy_round, interval_seconds=interval, clock=SystemClock(),
                on_failure=say_trouble,
            )
            if continuous
            else [archiver.round()]
        )  # fmt: skip
        lost = False
        records = size = 0
        ending.push(
            unless_failed(
                lambda: closing.say(
                    records, "records were lost before" if lost else "complete", size=size,
                    report=f"Archive: {folder}",
                )
            )
        )  # fmt: skip
        for result in rounds:
            lost = _show_round(result, output) or lost
            records += int(str(result["records"]))
            size += int(str(result["bytes"]))
    if lost:
        raise typer.Exit(LOST)


def restore(
    *,
    cluster: ClusterOption,
    folder: FolderOption,
    topic: Annotated[
        list[str] | None,
        typer.Option("--topic", metavar="TOPIC", help="An archived topic; default: all of them."),
    ] = None,
    rename: Annotated[
        str | None,
        typer.Option("--as", metavar="NAME", help="Restore under this name; for one topic."),
    ] = None,
    from_time: FromOption = None,
    to_time: ToOption = None,
    partition: Annotated[
        int | None, typer.Option("--partition", min=0, help="Only this partition.")
    ] = None,
    from_offset: Annotated[
        int | None,
        typer.Option("--from-offset", min=0, help="Only archived offsets from this one on."),
    ] = None,
    to_offset: Annotated[
        int | None, typer.Option("--to-offset", min=0, help="Only archived offsets below this one.")
    ] = None,
    key_prefix: Annotated[
        str | None,
        typer.Option(
            "--key-prefix", metavar="TEXT", help="Only records whose key begins with this."
        ),
    ] = None,
    append: Annotated[
        bool, typer.Option("--append", help="Append to topics that hold records already.")
    ] = False,
    master: MasterOption = None,
    conf: ConfOption = None,
    properties_file: PropertiesOption = None,
    ship: ShipOption = False,
    file: FileOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Write archived records back into topics, in order and exactly once.

    The target may be another cluster or another topic name. An interrupted
    restore continues when the same command is given again.
    """
    from replicator.spark.archive_files.local import known_archive
    from replicator.spark.restore.selection import Selection, checked_selection
    from replicator.spark.session.settings import spark_conf
    from replicator.topology.file.load import require_plan, topology_path

    plan = require_plan(topology_path(file))
    selection = Selection(
        topics=tuple(topic or ()),
        from_ms=milliseconds(from_time, option="--from"),
        to_ms=milliseconds(to_time, option="--to"),
        partition=partition,
        from_offset=from_offset,
        to_offset=to_offset,
        key_prefix=None if key_prefix is None else key_prefix.encode(),
    )
    target = _cluster(plan, cluster)
    settings = spark_settings(master, conf, properties_file, ship=ship, clusters=(target,))
    held = known_archive(folder, spark_conf(settings))
    if held is not None:
        checked_selection(held, selection, rename)
    from replicator.spark.restore.run import RestoreRequest
    from replicator.spark.restore.run import restore as restore_records
    from replicator.spark.session.session import spark_session

    wanted = RestoreRequest(plan.topology, target, selection, rename, append)
    closing = Closing(f"restore {cluster}", output)
    with spark_session(settings, name=f"replicator restore {cluster}") as session:
        result: Any = restore_records(session, folder, wanted)
    skipped = f"; {result['skipped']:,} had been restored before" if result["skipped"] else ""
    text = f"Restored {result['records']:,} records into {cluster}{skipped}."
    render(result, output, text=text)
    closing.say(
        result["records"] + result["skipped"], "complete", size=result["bytes"],
        report=f"Archive: {folder}, restore {result['restore']}",
    )  # fmt: skip


def _cluster(plan: "Plan", alias: str) -> "ClusterPlan":
    for one in plan.clusters:
        if one.alias == alias:
            return one
    raise InputError(
        f"the topology has no cluster '{alias}'",
        remedy=f"Its clusters: {', '.join(str(one.alias) for one in plan.clusters)}.",
    )


def _show_round(result: Any, output: Output) -> bool:  # noqa: ANN401 - plain JSON
    if result["commit"] is None:
        text = "Nothing new to archive."
    else:
        text = (
            f"Archived {result['records']:,} records in {result['files']} files "
            f"({result['bytes']:,} bytes), commit {result['commit']}."
        )
    render(result, output, text=text)
    for lost in result["lost"]:
        say(
            f"LOST {lost['topic']}/{lost['partition']}: offsets {lost['from']} to {lost['to']} were "
            "deleted by retention before they were archived. The manifest records it; run it more often.",
            style="red",
        )
    return bool(result["lost"])


def _show_compaction(result: Any, output: Output) -> None:  # noqa: ANN401 - plain JSON
    text = (
        "Nothing to compact."
        if result["commit"] is None
        else f"Merged {result['before']} files into {result['after']}."
    )
    render(result, output, text=text)
