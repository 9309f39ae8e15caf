"""`check`: are running workers ready, does a canary of every link arrive; `--wan`: how are the lines?"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from replicator.cli.options import FileOption, Output, OutputOption
from replicator.cli.output import render, say

if TYPE_CHECKING:
    from replicator.observability.release_health import ReleaseHealth

FAILED = 1


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command(rich_help_panel="Replication")(check)


def check(
    *,
    url: Annotated[
        list[str] | None,
        typer.Option(
            "--url",
            metavar="URL",
            help="Address of workers, http://HOST:PORT or https://HOST:PORT; may be repeated. A name with several "
            "addresses stands for several workers. Default: http://127.0.0.1:8080.",
            show_default=False,
        ),
    ] = None,
    timeout: Annotated[
        float,
        typer.Option(min=1.0, max=3600.0, help="Seconds to wait until every check passes."),
    ] = 60.0,
    http_token_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="File with the workers' bearer token, if they require one."
        ),
    ] = None,
    http_ca_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="CA certificates (PEM) to check the workers' certificates against; default: the system's.",
        ),
    ] = None,
    wan: Annotated[
        bool,
        typer.Option(
            "--wan",
            help="Instead, measure the network paths from this host to the clusters of the topology file: round "
            "trip, loss, rate, and where a worker should run.",
        ),
    ] = False,
    file: FileOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Check that workers are ready and that a canary record crosses every link.

    With --wan, no worker is contacted: the network paths from this host to the
    clusters are measured.
    """
    if wan:
        from replicator.cli.file.check_wan import check_lines

        if not check_lines(file, output):
            raise typer.Exit(FAILED)
        return
    from replicator.api.access.token import read_token
    from replicator.api.asking import watch_release
    from replicator.clock import SystemClock

    health = watch_release(
        url or ["http://127.0.0.1:8080"],
        token=None if http_token_file is None else read_token(http_token_file),
        authorities=http_ca_file,
        timeout_seconds=timeout,
        clock=SystemClock(),
        on_waiting=lambda lines: say(f"waiting: {'; '.join(lines)}"),
    )
    render(_result(health), output, text=_text(health))
    if health.waiting_for:
        raise typer.Exit(FAILED)


def _result(health: "ReleaseHealth") -> dict[str, Any]:
    return {
        "ok": not health.waiting_for,
        "workers": [
            {"address": worker.address, "ready": not worker.reasons, "reasons": worker.reasons}
            for worker in health.workers
        ],
        "links": [
            {"link": link.link, "flow": link.flow, "canaries": link.came, "lost": link.lost,
             "paused": link.paused}
            for link in health.links
        ],
        "problems": list(health.waiting_for),
    }  # fmt: skip


def _text(health: "ReleaseHealth") -> str:
    lines = [
        f"{worker.address}  {'not ready' if worker.reasons else 'ready'}"
        for worker in health.workers
    ]
    lines += [
        f"{link.flow}  {link.link}  "
        + ("paused" if link.paused else f"{link.came} canaries arrived, {link.lost} lost")
        for link in health.links
    ]
    problems = [f"  {line}" for line in health.waiting_for]
    return "\n".join([*lines, "Problems:", *problems] if problems else [*lines, "All is well."])
