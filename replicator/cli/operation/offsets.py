"""`offsets translate` and `offsets trace`: where a position or a record is on the other clusters."""

from typing import TYPE_CHECKING, Annotated

import typer

from replicator.cli.options import FileOption, FlowOption, Output, OutputOption
from replicator.cli.output import render
from replicator.clock import json_time
from replicator.errors import InputError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from replicator.offsets.index.paths import TranslationPath
    from replicator.offsets.translation.trace import Place
    from replicator.offsets.translation.translation import Translation
    from replicator.topology.plan import PairPlan, Plan

TopicOption = Annotated[str, typer.Option("--topic", metavar="TOPIC", help="The topic.")]
PartitionOption = Annotated[int, typer.Option("--partition", min=0, help="Its partition.")]
OffsetOption = Annotated[int, typer.Option("--offset", min=0, help="The offset.")]


def register(app: typer.Typer) -> None:
    """Adds the command group."""
    group = typer.Typer(help="Find a position or a record on another cluster.")
    group.command("translate")(translate)
    group.command("trace")(trace)
    app.add_typer(group, name="offsets", rich_help_panel="Offsets")


def translate(
    *,
    flow: FlowOption,
    topic: TopicOption,
    partition: PartitionOption,
    offset: OffsetOption,
    reverse: Annotated[
        bool,
        typer.Option("--reverse", help="The offset is one of the target; show the source's."),
    ] = False,
    file: FileOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Show where a consumer continues on the other cluster after a given offset.

    The consumer has processed everything below the offset. With --reverse the
    topic may be given by its name on either cluster.
    """
    from replicator.control.roles.read import in_force
    from replicator.control.status.translator import open_translator
    from replicator.topology.file.load import require_plan, topology_path
    from replicator.topology.plan import find_pair

    plan = in_force(require_plan(topology_path(file)))
    pair = find_pair(plan, flow)
    way = _way(plan, pair, topic, partition, reverse=reverse)
    with open_translator(plan) as translator:
        translator.refresh([way])
        answer = translator.cross(way, offset)
    result = {
        "flow": pair.id,
        "topic": way.topic,
        "partition": partition,
        "offset": offset,
        "targetTopic": way.target_topic,
        "targetOffset": answer.offset,
        "grade": answer.grade,
        "recordsReread": answer.records_reread,
        "reason": answer.reason,
        "reverse": reverse,
        "probes": answer.probes,
    }
    render(result, output, text=_sentence(way, offset, answer))


def trace(
    *,
    cluster: Annotated[
        str, typer.Option("--cluster", metavar="ALIAS", help="The cluster that holds the record.")
    ],
    topic: TopicOption,
    partition: PartitionOption,
    offset: OffsetOption,
    file: FileOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Show the path of one record through all clusters."""
    from replicator.control.roles.read import in_force
    from replicator.control.status.translator import open_translator
    from replicator.offsets.translation.trace import Tracer
    from replicator.topology.file.load import require_plan, topology_path

    plan = in_force(require_plan(topology_path(file)))
    aliases = [str(one.alias) for one in plan.clusters]
    if cluster not in aliases:
        raise InputError(
            f"the topology has no cluster '{cluster}'",
            remedy=f"Its clusters: {', '.join(aliases)}.",
        )
    with open_translator(plan) as translator:
        places = Tracer(plan, translator).trace(cluster, topic, partition, offset)
    result = {
        "cluster": cluster,
        "topic": topic,
        "partition": partition,
        "offset": offset,
        "places": [place.as_json() for place in places],
    }
    render(result, output, text=_table(places))


def _way(
    plan: "Plan", pair: "PairPlan", topic: str, partition: int, *, reverse: bool
) -> "TranslationPath":
    """The translation path that the flow's own copies make."""
    from replicator.offsets.index.paths import translation_paths

    source, target = pair.source.alias, pair.target.alias
    ways = [
        way
        for way in translation_paths(plan, source, target, topic, partition)
        if any(part.back is None for part in way.components)
    ]
    if not reverse:
        if ways:
            return ways[0]
    else:
        for name in [way.target_topic for way in ways] or [topic]:
            for way in translation_paths(plan, target, source, name, partition):
                if any(part.onward is None for part in way.components):
                    return way
    raise InputError(
        f"flow {pair.id} does not copy topic '{topic}'",
        remedy="`replicator topics` lists what is replicated.",
    )


def _sentence(way: "TranslationPath", offset: int, answer: "Translation") -> str:
    place = f"{way.source} {way.topic}/{way.partition} at {offset}"
    if answer.offset is None:
        return f"{place} has no position on {way.target}: {answer.reason}."
    text = f"{place} is {way.target} {way.target_topic}/{way.partition} at {answer.offset}"
    if answer.grade == "exact":
        return f"{text} (exact)."
    return f"{text}; at most {answer.records_reread:,} records are read again: {answer.reason}."


def _table(places: "list[Place]") -> "RenderableType":
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("cluster", "record", "state", "time", "delay"):
        table.add_column(heading, overflow="fold")
    for place in places:
        at = "?" if place.offset is None else str(place.offset)
        delay = place.as_json()["delaySecondsAtMost"]
        table.add_row(
            f"{place.cluster} *" if place.asked else place.cluster,
            f"{place.topic}/{place.partition} at {at}" if place.topic else "?",
            f"{place.state}: {place.reason}" if place.reason else place.state,
            "" if place.timestamp_ms is None else json_time(place.timestamp_ms),
            "" if delay is None else f"within {delay:.1f} s",
        )
    return table
