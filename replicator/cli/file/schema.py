"""`schema`: prints the JSON Schema of the topology file."""

import typer

from replicator.cli.options import Output, OutputOption
from replicator.cli.output import render


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command(rich_help_panel="Topology")(schema)


def schema(output: OutputOption = Output.JSON) -> None:
    """Print the JSON Schema of the topology file, for editors and checks."""
    from replicator.topology.file.schema import topology_schema

    render(topology_schema(), Output.JSON if output is Output.TEXT else output)
