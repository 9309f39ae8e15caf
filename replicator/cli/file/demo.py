"""`replicator demo`: real clusters on this machine, live traffic, a killed worker, a verdict."""

import signal
from types import FrameType
from typing import Annotated

import typer

from replicator.demo.shapes import Shape


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command(rich_help_panel="Replication")(demo)


def demo(
    shape: Annotated[Shape, typer.Option(help="The topology to show.")] = Shape.ACTIVE_ACTIVE,
    seconds: Annotated[
        float,
        typer.Option(
            min=3.0,
            max=86_400.0,
            help="How long applications write; they continue until killed lanes run again.",
        ),
    ] = 20.0,
    keep: Annotated[
        bool,
        typer.Option("--keep", help="Keep everything running after the verdict, until Ctrl-C."),
    ] = False,
    no_wait: Annotated[
        bool, typer.Option("--no-wait", help="Stop after the verdict without waiting for Enter.")
    ] = False,
) -> int:
    """Show replication on real local clusters: no set-up, nothing left behind.

    Starts Kafka brokers, writes live traffic, runs two workers, kills one, and
    then proves that every record is on each cluster exactly once. Exit code 0
    only if it is. Needs Java 17 and Maven.
    """
    from replicator.demo.screen import Screen
    from replicator.demo.story import Demo, DemoOptions

    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)
    options = DemoOptions(shape=shape, traffic_seconds=seconds, keep=keep, wait=not no_wait)
    with Screen() as screen:
        return 0 if Demo(options, screen).run() else 1
