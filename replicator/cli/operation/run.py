"""`replicator run`: the worker."""

import gc
import os
import signal
import sys
from contextlib import ExitStack
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from replicator.cli.options import FileOption
from replicator.errors import InputError

if TYPE_CHECKING:
    from replicator.api.server.certificate import ServerCertificate

HTTP_AFTER_SECONDS = 3.0
INTERRUPTED = 130


class StopRequest:
    """Whether somebody asked the worker to stop.

    A flag and a pipe, not an Event: a signal handler runs in the middle of the main thread, and
    setting an Event that this very thread waits on can lock it up for good. The interpreter writes to the
    pipe as the signal comes: a handler runs only once the main thread does, which a signal does not wake
    that another thread received, or that came just before it began to wait.
    """

    def __init__(self) -> None:
        self.asked = False
        self._asked_here, self._wake = os.pipe()
        os.set_blocking(self._wake, False)

    def listen(self) -> None:
        """From now on SIGTERM and Ctrl-C ask; called in the main thread."""
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGTERM, self._on_signal)
        signal.signal(signal.SIGINT, self._on_signal)

    def wait(self) -> None:
        """Returns once it is asked."""
        while not self.asked:
            os.read(self._asked_here, 1)

    def _on_signal(self, _signal: int, _frame: FrameType | None) -> None:
        """The first signal asks for a drain; the second one means now."""
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True


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
        int,
        typer.Option(
            metavar="N", min=0, max=64, help="Lane processes at most; 0 means one per core."
        ),
    ] = 0,
    http: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="Address of the HTTP API; default 127.0.0.1:8080.",
            show_default=False,
        ),
    ] = None,
    http_token_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="File with the bearer token for changes over HTTP."),
    ] = None,
    http_tls_certificate: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Serve HTTPS with this certificate chain (PEM); read again if it changes.",
        ),
    ] = None,
    http_tls_key: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Private key of that certificate (PEM).")
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            envvar="REPLICATOR_MEMORY",
            help="Memory that the worker may use in total, such as 2GiB; default: the container's limit.",
            show_default=False,
        ),
    ] = None,
    expansion: Annotated[
        int,
        typer.Option(
            metavar="TIMES",
            min=0,
            max=10_000,
            envvar="REPLICATOR_EXPANSION",
            help="How many times larger records may be than their compressed batches; "
            "0 means 100 on short network paths and 10 on long ones.",
        ),
    ] = 0,
    grace: Annotated[
        float,
        typer.Option(metavar="SECONDS", min=1, max=3600, help="Seconds to drain after SIGTERM."),
    ] = 20.0,
    worker_id: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            envvar="REPLICATOR_WORKER_ID",
            help="Stable name: the worker keeps its lanes across a restart.",
        ),
    ] = None,
    # Two options, as one they would take a column of the help from all others.
    no_watch: Annotated[
        bool,
        typer.Option(
            "--no-watch", help="Read the topology file once, instead of following its changes."
        ),
    ] = False,
    _watch: Annotated[
        bool, typer.Option("--watch", help="Follow edits, as it is.", hidden=True)
    ] = True,
    metrics_detail: Annotated[
        bool, typer.Option("--metrics-detail", help="Export metrics per topic and partition.")
    ] = False,
    log_format: Annotated[
        LogFormat | None,
        typer.Option(help="Default: text on a terminal, json elsewhere.", show_default=False),
    ] = None,
) -> int:
    """Run a worker: replicate until SIGTERM or Ctrl-C, then drain and stop.

    Workers find each other through their target cluster: start as many as you
    like, on any machine.
    """
    # Until what is imported is set aside: collecting in between finds nothing and takes a tenth of the start.
    gc.disable()
    from replicator.dataplane.process.spawn import early_processes, lane_processes, start_child
    from replicator.thread_stacks import show_stacks_on_signal

    show_stacks_on_signal()
    wanted = lane_processes(processes)
    # Before anything that is slow to import.
    children = [start_child() for _ in range(early_processes(wanted))]
    from replicator.cli.operation.worker_options import checked_options
    from replicator.observability.logging import configure_logging
    from replicator.wiring.worker import Worker

    debug = "--debug" in sys.argv
    configure_logging(log_format=None if log_format is None else log_format.value, debug=debug)
    options = checked_options(
        file=file, clusters=tuple(cluster or ()), flows=tuple(flow or ()),
        worker_id=worker_id, grace_seconds=grace, metrics_detail=metrics_detail,
        watch=not no_watch, memory=memory, expansion=expansion,
    )  # fmt: skip
    from replicator.api.access.token import TokenFile
    from replicator.api.server.address import bind, parse_http_address

    token_file = None if http_token_file is None else TokenFile(http_token_file)
    certificate = _certificate(http_tls_certificate, http_tls_key)
    bound = bind(parse_http_address(http))
    if certificate is not None:
        bound = replace(bound, scheme="https")
    stop = StopRequest()
    stop.listen()
    worker = Worker(options, children, processes=wanted)
    show_stacks_on_signal(worker.pool.show_stacks)
    worker.start(http=bound.url)
    with ExitStack() as stack:
        # Lanes first: the HTTP face costs a second of imports on the same cores.
        worker.wait_until_copying(HTTP_AFTER_SECONDS, lambda: stop.asked)
        from replicator.api.server.start import http_in_thread
        from replicator.wiring.worker_http import WorkerProvider

        provider = WorkerProvider(
            worker,
            token_problem=(lambda: "") if token_file is None else token_file.problem,
            certificate_problem=(lambda: "") if certificate is None else certificate.problem,
        )
        token = None if token_file is None else token_file.current
        stack.enter_context(
            http_in_thread(provider, bound=bound, token=token, certificate=certificate)
        )
        # What was imported never becomes garbage: to look at it again takes a tenth of a second.
        gc.freeze()
        gc.enable()
        stop.wait()
        try:
            clean = worker.drain()
        except KeyboardInterrupt:
            os._exit(INTERRUPTED)  # asked twice: lanes are taken over from what they committed
        # A client that waits for a silent broker must not keep the process: what was to be made
        # durable is, or its next owner will do it again.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0 if clean else 1)


def _certificate(certificate: Path | None, key: Path | None) -> "ServerCertificate | None":
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise InputError(
            "one of certificate and key is missing",
            subject="--http-tls-certificate" if certificate is None else "--http-tls-key",
            remedy="Give both, or none for plain HTTP.",
        )
    from replicator.api.server.certificate import ServerCertificate

    return ServerCertificate(certificate, key)
