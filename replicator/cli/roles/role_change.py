"""What `switchover`, `failover` and `failback` share: the question, progress and the report."""

import logging
from typing import TYPE_CHECKING

import typer

from replicator.cli.options import Output
from replicator.cli.output import confirm, render, say

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import RenderableType

    from replicator.failover.report.report import TransitionReport
    from replicator.failover.rules.request import Question, StepEvent, TransitionRequest

REFUSED = 3


def carry_out(
    request: "TransitionRequest", *, file: "Path | None", output: Output, yes: bool
) -> None:
    """Runs a transition and prints its report; exits with 3 where it was refused or rolled back.

    A run that ends early (exit code 1, 3 or 130) says that its transition is still open, with the
    commands that resume it and roll it back.
    """
    from replicator.clock import SystemClock
    from replicator.failover.rules.commands import still_open
    from replicator.failover.run.runner import run_transition
    from replicator.failover.steps.journal import TakenOverError
    from replicator.observability.logging import configure_logging
    from replicator.topology.file.load import require_plan, topology_path

    configure_logging()
    for room in ("replicator", "failover", "control"):
        logging.getLogger(room).setLevel(logging.ERROR)  # progress is printed line by line
    begun = False

    def progress(event: "StepEvent") -> None:
        nonlocal begun
        begun = True
        _progress(event)

    try:
        report = run_transition(
            require_plan(topology_path(file)),
            request,
            clock=SystemClock(),
            on_step=progress,
            answer=lambda question: _answer(question, yes=yes),
        )
    except BaseException as error:
        if begun and not isinstance(error, TakenOverError):  # then another operator has it
            say(still_open(request.kind, request.link, _repeated(request, file)), style="yellow")
        raise
    render(report.as_json(), output, text=_text(report))
    if report.outcome != "done":
        raise typer.Exit(REFUSED)


def _repeated(request: "TransitionRequest", file: "Path | None") -> list[str]:
    """Options of this run that its journal does not keep."""
    given = {"--file": file, "--export": request.export}
    return [word for name, path in given.items() if path for word in (name, str(path))]


def _progress(event: "StepEvent") -> None:
    if event.state == "began":
        say(f"{event.step} ..." + (f" {event.text}" if event.text else ""))
    elif event.state == "done":
        say(f"{event.step}: {event.text} ({event.seconds:.1f} s)")
    else:
        say(f"  {event.text}", style="yellow" if event.state == "failed" else None)


def _answer(question: "Question", *, yes: bool) -> bool:
    if yes:
        say(question.text)
    return confirm(question.text, yes=yes)


def _outcome(report: "TransitionReport") -> str:
    if not report.dry_run:
        return report.outcome
    would = "would be refused" if report.outcome == "refused" else "would begin"
    return f"dry run, nothing was changed; a real run {would}"


def _text(report: "TransitionReport") -> "RenderableType":
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    head = (
        f"{report.kind} of '{report.link}' {report.from_cluster} -> {report.to_cluster}: "
        f"{_outcome(report)}"
    )
    parts: list[RenderableType] = [Text(head, style="green" if report.outcome == "done" else "red")]
    if report.reason:
        parts.append(Text(f"  {report.reason}"))
    for title, rows in (
        ("check", [(c.check, "ok" if c.ok else "NO", c.detail, c.remedy) for c in report.checks]),
        ("step", [(s.step, f"{s.seconds:.1f} s", s.result, "") for s in report.steps]),
    ):
        if not rows:
            continue
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
        for heading in (title, "", ""):
            table.add_column(heading, overflow="fold")
        for name, state, detail, remedy in rows:
            table.add_row(name, state, f"{detail}. {remedy}" if remedy else detail)
        parts.append(table)
    parts.append(Text(f"loss {report.loss.words()}"))
    if report.rto_seconds is not None:
        parts.append(Text(f"epoch {report.epoch}, RTO {report.rto_seconds:.1f} s"))
    if report.outcome == "done" and not report.dry_run:
        parts.append(Text(f"\n{report.client_properties}", style="dim"))
    return Group(*parts)
