"""`validate`: checks the topology file alone."""

from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from replicator.cli.options import FileOption, Output, OutputOption
from replicator.cli.output import Result, render, say
from replicator.errors import InputError

if TYPE_CHECKING:
    from replicator.topology.file.load import LoadResult


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command(rich_help_panel="Topology")(validate)


def validate(file: FileOption = None, output: OutputOption = Output.TEXT) -> None:
    """Check the topology file; no cluster is contacted.

    Every problem is shown at once, with its place in the file. Exit code 2 when
    the file is wrong.
    """
    from replicator.topology.file.load import load_plan, topology_path

    path = topology_path(file)
    loaded = load_plan(path)
    if output is Output.TEXT:
        for problem in loaded.problems:
            say(str(problem), style="red" if problem.severity == "error" else "yellow")
    result = _result(str(path), loaded)
    if loaded.plan is not None:
        render(result, output, text=_summary(result))
        return
    if output is not Output.TEXT:
        render(result, output)
    raise typer.Exit(InputError.exit_code)


def _result(file: str, loaded: "LoadResult") -> Result:
    plan = loaded.plan
    return {
        "file": file,
        "valid": plan is not None,
        "topology": plan.topology if plan is not None else None,
        "planHash": plan.hash if plan is not None else None,
        "clusters": [cluster.alias for cluster in plan.clusters] if plan is not None else [],
        "links": [link.name for link in plan.links] if plan is not None else [],
        "flows": [
            {"flow": flow.id, "link": flow.link}
            for flow in (plan.flows if plan is not None else ())
        ],
        "problems": [asdict(problem) for problem in loaded.problems],
    }


def _summary(result: Result) -> str:
    parts = [_counted(result[name], name[:-1]) for name in ("clusters", "links", "flows")]
    return f"{result['file']} is valid: {', '.join(parts)}"


def _counted(items: object, noun: str) -> str:
    count = len(items) if isinstance(items, list) else 0
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
