"""`replicator run`: the worker."""

import signal
import sys
import threading
from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from replicator.cli.options import FileOption

HTTP_AFTER_SECONDS = 3.0


class LogFormat(StrEnum):
    """How log lines are written."""

    JSON = "json"
    TEXT = "text"


def register(app: typer.Typer) -> None:
    """Adds the verb."""
    app.command(name="run")(run)


def run(
    file: FileOption = None,
    cluster: Annotated[
        list[str] | None,
        typer.Option(
            "--cluster",
            metavar="ALIAS",
            help="Serve only flows whose target is this cluster; may be repeated.",
        ),
    ] = None,
    flow: Annotated[
        list[str] | None,
        typer.Option(
            "--flow",
            metavar="'A->B'",
            help="Serve only this flow; may be repeated.",
        ),
    ] = None,
    processes: Annotated[
        int, typer.Option(min=0, max=64, help="Lane processes; 0 is one per core.")
    ] = 0,
    http: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT", help="Where to answer; default 127.0.0.1:8080.", show_default=False
        ),
    ] = None,
    http_token_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Bearer token that allows changes over HTTP."),
    ] = None,
    grace: Annotated[
        float, typer.Option(min=1.0, max=3600.0, help="Seconds to drain after SIGTERM.")
    ] = 20.0,
    worker_id: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            envvar="REPLICATOR_WORKER_ID",
            help="Stable name: after a restart the worker gets its lanes back.",
        ),
    ] = None,
    metrics_detail: Annotated[
        bool, typer.Option("--metrics-detail", help="Metrics per topic and partition.")
    ] = False,
    log_format: Annotated[
        LogFormat | None,
        typer.Option(help="Default: text on a terminal, json elsewhere.", show_default=False),
    ] = None,
) -> int:
    """Run a worker: replicate until SIGTERM or Ctrl-C, then drain and stop.

    Workers find each other through their target cluster: start as many as you like, anywhere.
    """  # fmt: skip
    from replicator.cli.worker_options import checked_options
    from replicator.observability.logging import configure_logging
    from replicator.wiring import Worker

    debug = "--debug" in sys.argv
    configure_logging(log_format=None if log_format is None else log_format.value, debug=debug)
    options = checked_options(
        file=file, clusters=tuple(cluster or ()), flows=tuple(flow or ()), processes=processes,
        worker_id=worker_id, grace_seconds=grace, metrics_detail=metrics_detail,
    )  # fmt: skip
    from replicator.api.address import bind, parse_http_address

    bound = bind(parse_http_address(http))
    token = http_token_file.read_text().strip() if http_token_file is not None else None
    stopping = threading.Event()

    def stop(_signal: int, _frame: FrameType | None) -> None:
        if stopping.is_set():
            raise KeyboardInterrupt  # the second time means now
        stopping.set()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    worker = Worker(options)
    worker.start(http=bound.url)
    with ExitStack() as stack:
        # Lanes first: the HTTP face costs a second of imports on the same cores.
        worker.wait_until_copying(HTTP_AFTER_SECONDS, stopping)
        from replicator.api.server import http_in_thread
        from replicator.wiring_http import WorkerProvider

        stack.enter_context(http_in_thread(WorkerProvider(worker), bound=bound, token=token))
        while not stopping.wait(0.5):
            pass
        clean = worker.drain()
    return 0 if clean else 1
