"""`import-mm2`: from MirrorMaker 2's properties file to a topology, and its progress with it."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from replicator.cli.options import Output, OutputOption, YesOption
from replicator.cli.output import confirm, err, render, say, to_yaml
from replicator.errors import InputError

if TYPE_CHECKING:
    from rich.table import Table

    from replicator.control.operator.mm2_adoption import Survey
    from replicator.mm2.configuration.import_map import Imported
    from replicator.mm2.properties.verdicts import MappingVerdict
    from replicator.topology.plan import Plan

_KEY_WIDTH = 48
_STYLES = {"mapped": "green", "not needed": "dim", "not supported": "yellow"}


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("import-mm2", rich_help_panel="Topology")(import_mm2)


def import_mm2(
    *,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="MirrorMaker 2's properties file.")],
    adopt: Annotated[
        bool, typer.Option("--adopt", help="Continue where a stopped MirrorMaker 2 left off.")
    ] = False,
    topology: Annotated[
        Path | None,
        typer.Option(
            "-f", "--file", metavar="TOPOLOGY", show_default=False,
            help="With --adopt: the topology made from FILE; default: FILE converted as it is.",
        ),
    ] = None,
    name: Annotated[
        str, typer.Option("--name", help="Name of the topology.", metavar="NAME")
    ] = "mm2",
    output: OutputOption = Output.TEXT,
    yes: YesOption = False,
) -> None:  # fmt: skip
    """Convert a MirrorMaker 2 properties file to a topology; nothing is written.

    The topology goes to standard output, a verdict on every key to standard
    error.

    With --adopt, each partition will start exactly where MirrorMaker 2 stopped.
    """
    from replicator.mm2.configuration.import_map import import_properties

    imported = import_properties(_entries(file), name=name)
    if adopt:
        _adopt(file, imported, topology, output=output, yes=yes)
        return
    if topology is not None:
        raise InputError(
            "-f names the topology that --adopt writes progress for", remedy="Add --adopt."
        )
    _show(file, imported, output)


def _show(file: Path, imported: "Imported", output: Output) -> None:
    from replicator.topology.file.load import load_text

    text = _topology_text(file, imported)
    found = load_text(text, file="topology").problems if text else ()
    if output is Output.TEXT:
        if text:
            typer.echo(text, nl=False)
        _say_verdicts(imported.verdicts)
        say(_counts(imported.verdicts))
        for problem in found:
            say(str(problem), style="red" if problem.severity == "error" else "yellow")
    else:
        render(
            {
                "file": str(file),
                "topology": imported.document,
                "verdicts": [verdict.as_json() for verdict in imported.verdicts],
                "problems": [*imported.problems, *map(str, found)],
            },
            output,
        )
    if imported.problems:
        raise InputError(imported.problems[0], subject=str(file))
    if any(problem.severity == "error" for problem in found):
        raise InputError(
            "the topology made from it is not valid yet (see above)",
            subject=str(file),
            remedy="Correct it by hand, then run 'replicator validate'.",
        )


def _adopt(
    file: Path, imported: "Imported", topology: Path | None, *, output: Output, yes: bool
) -> None:
    from replicator.clock import SystemClock
    from replicator.control.operator.mm2_adoption import matching_pairs, survey
    from replicator.control.operator.mm2_adoption_write import adopt

    if imported.problems:
        raise InputError(imported.problems[0], subject=str(file))
    plan = _plan(file, imported, topology)
    surveys = [survey(plan, pair, flow) for pair, flow in matching_pairs(plan, imported.flows)]
    if output is Output.TEXT:
        for found in surveys:
            say(f"{found.pair.id}, progress from '{found.mirrored.offsets_topic}':", style="bold")
            err().print(_starts(found))
    count = sum(start.offset is not None for found in surveys for start in found.starts)
    done = confirm(f"Start {count} partitions there?", yes=yes)
    if done:
        for found in surveys:
            adopt(plan, found, clock=SystemClock())
    text = (
        f"Taken over: {count} partitions. Start workers with 'replicator run'; do not start "
        f"MirrorMaker 2 again."
        if done
        else "Nothing was changed."
    )
    render({"adopted": done, "flows": [found.as_json() for found in surveys]}, output, text=text)


def _plan(file: Path, imported: "Imported", topology: Path | None) -> "Plan":
    from replicator.topology.file.load import TopologyError, load_text, require_plan

    if topology is not None:
        return require_plan(topology)
    made = f"{file} (as a topology)"
    loaded = load_text(_topology_text(file, imported), file=made)
    if loaded.plan is None:
        raise TopologyError(made, loaded.errors)
    return loaded.plan


def _entries(file: Path) -> Any:  # noqa: ANN401 - heavy types are imported late
    from replicator.mm2.properties.java_properties import ENCODING, parse_properties
    from replicator.mm2.properties.security_values import PLACEHOLDER, jaas_value
    from replicator.redaction import is_secret_setting, register_secret

    try:
        entries = parse_properties(file.read_text(encoding=ENCODING))
    except OSError as error:
        wrong = f"cannot be read ({error.strerror or error})"
        raise InputError(wrong, subject=str(file), remedy="Check the path.") from error
    for entry in entries:
        if is_secret_setting(entry.key) and PLACEHOLDER not in entry.value:
            register_secret(jaas_value(entry.value, "password") or entry.value.strip())
    return entries


def _topology_text(file: Path, imported: "Imported") -> str:
    if imported.document is None:
        return ""
    head = [
        f"Made by 'replicator import-mm2 {file.name}'. The verdicts on every key are printed beside it;",
        "what has to be done by hand:",
    ]
    todo = [
        f"- line {verdict.line}, {verdict.key}: {verdict.reason}"
        for verdict in imported.verdicts
        if verdict.outcome == "not supported" or (verdict.outcome == "mapped" and verdict.reason)
    ]
    lines = [*head, *todo] if todo else [head[0].rpartition(".")[0] + "."]
    return "".join(f"# {_plain(line)}\n" for line in lines) + to_yaml(imported.document)


def _plain(text: str) -> str:
    """On one line, without characters that a YAML comment may not hold."""
    return "".join(char if char.isprintable() else "?" for char in text)


def _counts(verdicts: "Sequence[MappingVerdict]") -> str:
    counts = dict.fromkeys(_STYLES, 0)
    for verdict in verdicts:
        counts[verdict.outcome] += 1
    parts = ", ".join(f"{count} {outcome}" for outcome, count in counts.items())
    return f"{len(verdicts)} keys: {parts}."


def _say_verdicts(verdicts: "Sequence[MappingVerdict]") -> None:
    """A table whose lines are never folded, so that keys and places in it can be found and copied."""
    width = min(max((len(verdict.key) for verdict in verdicts), default=0), _KEY_WIDTH)
    say(f"line  {'key':<{width}}  verdict        where, or why", style="bold")
    for verdict in verdicts:
        why = ": ".join(part for part in (verdict.to, verdict.reason) if part)
        key = f"{_plain(verdict.key):<{width}}"
        say(
            f"{verdict.line:>4}  {key}  {verdict.outcome:<13}  {_plain(why)}",
            style=_STYLES[verdict.outcome],
        )


def _starts(found: "Survey") -> "Table":
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("topic", "copied to", "last copied", "starts at", "left"):
        table.add_column(heading, justify="left" if heading in {"topic", "copied to"} else "right")
    table.add_column("", overflow="fold")
    for start in found.starts:
        numbers = (start.last_copied, start.offset, start.left)
        table.add_row(
            f"{start.topic}/{start.partition}",
            start.target,
            *("" if number is None else str(number) for number in numbers),
            Text(start.note),
        )
    return table
