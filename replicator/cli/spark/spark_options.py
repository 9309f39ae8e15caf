"""Options of the commands that run on Spark, spelled and explained alike; nothing heavy is imported."""

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from replicator.errors import InputError

if TYPE_CHECKING:
    from replicator.spark.session.settings import SparkSettings
    from replicator.topology.plan import ClusterPlan, PairPlan, Plan

MasterOption = Annotated[
    str | None,
    typer.Option(
        "--master", metavar="URL", help="Spark master; default: all cores of this machine."
    ),
]
ConfOption = Annotated[
    list[str] | None,
    typer.Option("--conf", metavar="NAME=VALUE", help="A Spark setting; may be repeated."),
]
PropertiesOption = Annotated[
    Path | None,
    typer.Option("--properties-file", metavar="FILE", help="Spark settings from a file."),
]
ShipOption = Annotated[
    bool,
    typer.Option(
        "--ship",
        help="Send the packages and transforms that tasks need to the executors of a cluster.",
    ),
]
TopicsOption = Annotated[
    list[str] | None,
    typer.Option("--topic", metavar="TOPIC", help="Only this source topic; may be repeated."),
]
ContinuousOption = Annotated[bool, typer.Option("--continuous", help="Repeat until stopped.")]
IntervalOption = Annotated[
    float, typer.Option("--interval", min=1.0, help="Seconds between two rounds.")
]
FromOption = Annotated[
    str | None,
    typer.Option("--from", metavar="TIME", help="Only records of this time (ISO 8601) and later."),
]
ToOption = Annotated[
    str | None, typer.Option("--to", metavar="TIME", help="Only records before this time.")
]


def spark_settings(
    master: str | None,
    conf: list[str] | None,
    properties_file: Path | None,
    *,
    ship: bool = False,
    pair: "PairPlan | None" = None,
    clusters: "Iterable[ClusterPlan]" = (),
) -> "SparkSettings":
    """What these options ask for; ``--debug`` is accepted anywhere on the command line.

    ``pair`` is the one whose transforms run in tasks; these log in to its clusters, or to ``clusters``.

    Raises:
        InputError: a ``--conf`` is no setting.
    """
    import sys

    from replicator.spark.session.settings import SparkSettings, parse_conf

    return SparkSettings(
        master=master,
        conf=parse_conf(conf or ()),
        properties_file=properties_file,
        debug="--debug" in sys.argv,
        ship=ship,
        modules=(
            *(() if pair is None else transform_modules(pair)),
            *login_modules(clusters if pair is None else (pair.source, pair.target)),
        ),
    )


def login_modules(clusters: "Iterable[ClusterPlan]") -> tuple[str, ...]:
    """The modules that tasks log in with and that only some topologies need: AWS's signer."""
    from replicator.topology.plan import AWS_SIGNER

    signed = any(each.security.mechanism == "AWS_MSK_IAM" for each in clusters)
    return (AWS_SIGNER,) if signed else ()


def transform_modules(pair: "PairPlan") -> tuple[str, ...]:
    """The modules of the transforms of a pair's flows, each once."""
    names = (name for flow in pair.flows for name in flow.policy.transforms)
    return tuple(dict.fromkeys(name.partition(":")[0] for name in names))


def plan_of_flow(path: Path, flow: str) -> "tuple[Plan, PairPlan]":
    """The plan as the links' roles make it now, and the pair of a flow.

    Raises:
        InputError: the file is wrong, or it has no such flow; a flow between clusters that no link joins
            in either direction is refused before any cluster is asked for its roles.
    """
    from replicator.control.roles.read import in_force
    from replicator.topology.file.load import require_plan
    from replicator.topology.plan import find_pair

    plan = require_plan(path)
    joined = {frozenset((str(pair.source.alias), str(pair.target.alias))) for pair in plan.pairs}
    if frozenset(side.strip() for side in flow.split("->")) not in joined:
        find_pair(plan, flow)
    plan = in_force(plan)
    return plan, find_pair(plan, flow)


def milliseconds(text: str | None, *, option: str) -> int | None:
    """An ISO 8601 time as milliseconds since the epoch; without a zone it is UTC.

    Raises:
        InputError: it is no time.
    """
    if text is None:
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError as error:
        raise InputError(
            f"'{text}' is not a time",
            subject=option,
            remedy="Write it as 2026-01-31T12:00:00Z.",
        ) from error
    return round((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000)
