"""`bulk-sync`: history in one go, then on with the live flow."""

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from replicator.cli.options import FileOption, FlowOption, Output, OutputOption, YesOption
from replicator.cli.output import confirm, render, say
from replicator.cli.spark.closing import Closing
from replicator.cli.spark.spark_options import (
    ConfOption,
    MasterOption,
    PropertiesOption,
    ShipOption,
    TopicsOption,
    plan_of_flow,
    spark_settings,
)

if TYPE_CHECKING:
    from rich.console import RenderableType

    from replicator.spark.bulk.run import BulkOutcome
    from replicator.spark.copy.bulk_plan import BulkPlan
    from replicator.spark.session.settings import SparkSettings
    from replicator.topology.plan import PairPlan, Plan

FAILED = 1
MAX_LINES = 20
_UNFINISHED_HINT = (
    "A run with another --compacted began them, or their leader did not answer: repeat that run, or "
    "return them to the workers with --release."
)
_UNFINISHED = (
    f"Nothing to copy with this --compacted, and partitions are unfinished. {_UNFINISHED_HINT}"
)

_LEFT = (
    "What was committed stays, and the workers do not copy the rest: run it again, and it continues where it was, "
    "or return the partitions to the workers with --release."
)


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command(name="bulk-sync", rich_help_panel="History, on Spark")(bulk_sync)


def bulk_sync(
    *,
    flow: FlowOption,
    topic: TopicsOption = None,
    compacted: Annotated[
        Literal["all", "latest"],
        typer.Option(
            "--compacted", help="Copy compacted topics in full, or only the latest record per key."
        ),
    ] = "all",
    manifest: Annotated[
        Path | None,
        typer.Option(
            "--manifest", metavar="FILE", help="Write the manifest to this file, as JSON."
        ),
    ] = None,
    release: Annotated[
        bool,
        typer.Option(
            "--release", help="Copy nothing; return unfinished partitions to the workers."
        ),
    ] = False,
    master: MasterOption = None,
    conf: ConfOption = None,
    properties_file: PropertiesOption = None,
    ship: ShipOption = False,
    file: FileOption = None,
    output: OutputOption = Output.TEXT,
    yes: YesOption = False,
) -> None:
    """Copy existing records on all cores, or with Spark; workers continue exactly where the copy ends.

    Without a Spark master, processes on this machine copy. Run it again after an interruption: it continues where it stopped.
    """
    from replicator.control.backfill.rights import require_rights
    from replicator.observability.logging import configure_logging
    from replicator.spark.bulk.target_logs import require_targets
    from replicator.spark.copy.bulk_plan import survey, unfinished
    from replicator.spark.copy.tasks import needs_spark
    from replicator.topology.file.load import topology_path

    configure_logging()
    logging.getLogger("replicator").setLevel(logging.WARNING)  # progress is reported line by line
    path = topology_path(file)
    plan, pair = plan_of_flow(path, flow)
    if release:
        _release(plan, pair, topic or [], output)
        return
    applied_first(plan, pair)
    found = survey(plan, pair, topics=topic or [], keeps_latest=compacted == "latest")
    require_targets(plan, pair, found.control, topics=topic or [])
    if found.unknown:
        topic_name, number = found.unknown[0]
        say(
            f"{len(found.unknown)} partitions are left to the workers, {topic_name}/{number} among them: "
            f"{pair.source.alias} does not say what they hold. See 'replicator status'.",
            style="yellow",
        )
    if not found.ranges:
        left = unfinished(found.control, pair, topic or [])
        text = _UNFINISHED if left else "Nothing to copy: the flow has all history."
        if found.unknown and not left:
            text = "Nothing to copy of the other partitions."
        render({"ranges": [], "unfinished": len(left)}, output, text=text)
        return
    require_rights(plan, pair, {one.record.topic: one.record.target for one in found.ranges})
    if output is Output.TEXT and not yes:
        render({}, output, text=_shown(found))
    settings = spark_settings(master, conf, properties_file, ship=ship, pair=pair)
    by_spark = " with Spark" if needs_spark(settings, found) else ""
    if not confirm(f"Copy {found.records:,} records{by_spark}?", yes=yes):
        say("Nothing was copied.")
        return
    closing = Closing(f"bulk-sync {pair.id}", output)
    outcome = _copied(plan, found, path, settings)
    _keep(outcome, manifest)
    render(outcome.manifest, output, text=_done(outcome, found))
    for result in outcome.stopped:
        say(
            f"{result.problem} {result.topic}/{result.partition}: stopped at {result.position}. "
            f"{result.detail} See 'replicator status'.",
            style="red",
        )
    copied = {one.key for one in found.ranges}
    others = [
        backfill
        for backfill in unfinished(found.control, pair, topic or [])
        if (backfill.topic, backfill.partition) not in copied
    ]
    if others:
        say(f"{len(others)} partitions stay unfinished. {_UNFINISHED_HINT}", style="yellow")
    unfinished_count = len(outcome.stopped) + len(others)
    told = outcome.manifest
    closing.say(
        int(str(told["records"])),
        f"{unfinished_count} partitions unfinished" if unfinished_count else "complete",
        size=int(str(told["bytes"])),
        report=f"Manifest: {manifest or 'not kept'}, {told['checksum']}",
    )
    if outcome.stopped:
        raise typer.Exit(FAILED)


def applied_first(plan: "Plan", pair: "PairPlan") -> None:
    """Applies a flow that was never applied, as a worker would.

    Raises:
        RefusedError: a check of apply refused.
    """
    from replicator.clock import SystemClock
    from replicator.control.operator.apply import apply_pair
    from replicator.control.store.read import require_control
    from replicator.errors import InputError, RefusedError

    try:
        control = require_control(plan, pair, client_id="replicator-seed")
    except InputError:
        control = None
    if control is not None and control.layout(pair.source.alias) is not None:
        return
    say(f"{pair.id} was never applied: its topics are created on {pair.target.alias} first.")
    problems = apply_pair(plan, pair, clock=SystemClock(), note=lambda line: say(f"  {line}"))
    if problems:
        first = problems[0]
        raise RefusedError(first.detail, subject=first.subject, remedy=first.remedy)


def _copied(
    plan: "Plan", found: "BulkPlan", path: Path, settings: "SparkSettings"
) -> "BulkOutcome":
    import threading

    from replicator.cli.operation.pause import operator
    from replicator.clock import SystemClock
    from replicator.errors import ReplicatorError
    from replicator.spark.bulk.run import run_bulk
    from replicator.spark.copy.tasks import copy_tasks

    name, taken = f"replicator bulk-sync {found.pair.id}", threading.Event()
    try:
        with copy_tasks(settings, found, name=name) as tasks:  # before any partition is taken
            return run_bulk(
                tasks, plan, found,
                topology_file=path, by=operator(), clock=SystemClock(), declared=taken.set,
            )  # fmt: skip
    except ReplicatorError:
        if taken.is_set():
            say(_LEFT, style="yellow")
        raise


def _release(plan: "Plan", pair: "PairPlan", topics: list[str], output: Output) -> None:
    from replicator.clock import SystemClock
    from replicator.control.backfill.handover import hand_back, read_control_past_open_transactions
    from replicator.spark.copy.bulk_plan import unfinished

    backfills = unfinished(read_control_past_open_transactions(plan, pair), pair, topics)
    hand_back(plan, pair, backfills, clock=SystemClock())
    released = [
        {"topic": backfill.topic, "partition": backfill.partition} for backfill in backfills
    ]
    many = "partition" if len(released) == 1 else "partitions"
    text = f"Returned to the workers: {len(released)} {many}."
    render({"released": released}, output, text=text if released else "Nothing was unfinished.")


def _keep(outcome: "BulkOutcome", path: Path | None) -> None:
    import json

    from replicator.errors import InputError

    if path is None:
        return
    try:
        path.write_text(json.dumps(outcome.manifest, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"the manifest cannot be written ({error.strerror}); everything was copied",
            subject=str(path),
            remedy="Run it again with -o json and another --manifest: nothing is copied twice.",
        ) from error


def _shown(found: "BulkPlan") -> "RenderableType":
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    from replicator.cli.file.plan import duration_text, size_text

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("topic", overflow="fold")
    for heading in ("partitions", "records", "bytes", "at least"):
        table.add_column(heading, justify="right")
    estimates = found.estimates()
    for estimate in estimates[:MAX_LINES]:
        count = sum(one.record.topic == estimate.topic for one in found.ranges)
        table.add_row(
            estimate.topic, str(count), f"{estimate.records:,}", size_text(estimate.bytes),
            duration_text(estimate.seconds),
        )  # fmt: skip
    lines: list[RenderableType] = [table]
    if len(estimates) > MAX_LINES:
        lines.append(Text(f"and {len(estimates) - MAX_LINES} more topics"))
    if found.resumed:
        lines.append(Text("An earlier run was interrupted: this one resumes where it stopped."))
    lines.append(Text("The workers do not copy these partitions meanwhile."))
    return Group(*lines)


def _done(outcome: "BulkOutcome", found: "BulkPlan") -> str:
    manifest = outcome.manifest
    return (
        f"Copied {manifest['records']:,} records of {len(outcome.results)} partitions in "
        f"{manifest['seconds']} s; the workers of {found.pair.id} go on from there. "
        f"Manifest {manifest['checksum']}."
    )
