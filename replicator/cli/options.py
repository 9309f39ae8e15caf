"""Options that several commands share, spelled and explained alike."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Output(StrEnum):
    """How a result is printed."""

    TEXT = "text"
    JSON = "json"
    YAML = "yaml"


FileOption = Annotated[
    Path | None,
    typer.Option(
        "-f",
        "--file",
        help="The topology file; else $REPLICATOR_TOPOLOGY, else ./topology.yaml.",
        show_default=False,
        metavar="FILE",
    ),
]

FlowOption = Annotated[
    str, typer.Option("--flow", metavar="'A->B'", help="The flow, as 'source->target'.")
]

OneFlowOption = Annotated[
    str | None, typer.Option("--flow", metavar="'A->B'", help="Only this flow.")
]

OutputOption = Annotated[
    Output,
    typer.Option("-o", "--output", help="Output format.", show_default=True),
]

YesOption = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")]
