"""The demo's output: a live table on a terminal, plain lines elsewhere."""

import sys
import textwrap
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self

from rich import box
from rich.console import Console
from rich.live import Live
from rich.table import Table

from replicator.demo.sample import FlowSample, Sample
from replicator.demo.verdict import DemoVerdict
from replicator.demo.words import numbers, seconds

PLAIN_EVERY_SECONDS = 3.0
INDENT = 10


class Screen:
    """Prints the story; keeps the table of flows current while it runs."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(file=sys.stdout, highlight=False)
        self._started = time.monotonic()
        self._live: Live | None = None
        self._plain_at = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end_table()

    @property
    def interactive(self) -> bool:
        """Whether the output is a terminal."""
        return self._console.is_terminal and sys.stdin.isatty()

    def say(self, line: str, *, style: str | None = None) -> None:
        """A line of the story, with the time since the start."""
        passed = time.monotonic() - self._started
        self._print(f"[{passed:5.1f} s] {line}", indent=INDENT, style=style)

    def note(self, lines: Sequence[str]) -> None:
        """Lines that continue the one before."""
        for line in lines:
            self._print(" " * INDENT + line, indent=INDENT)

    def show(
        self, sample: Sample, rates: Mapping[str, float], *, dead: str | None, now: bool = False
    ) -> None:
        """The flows as they are; without a terminal only now and then, or when asked ``now``."""
        table = flow_table(sample.flows, rates, dead=dead)
        if self._console.is_terminal:
            if self._live is None:
                self._live = Live(console=self._console, auto_refresh=False)
                self._live.start()
            self._live.update(table, refresh=True)
        elif now or time.monotonic() >= self._plain_at:
            self._plain_at = time.monotonic() + PLAIN_EVERY_SECONDS
            for line in flow_lines(sample.flows, rates, dead=dead):
                self._print(line, indent=4)

    def end_table(self) -> None:
        """Leaves the live table as it is; what follows is printed below it."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def show_verdict(self, verdict: DemoVerdict) -> None:
        """The table of the verdict and the checker's findings."""
        self.end_table()
        self._console.print(verdict_table(verdict))
        self.note(verdict.findings())

    def _print(self, text: str, *, indent: int, style: str | None = None) -> None:
        """One line, folded with what follows set under its beginning."""
        folded = textwrap.wrap(
            text,
            width=self._console.width,
            subsequent_indent=" " * indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
        self._console.print("\n".join(folded), markup=False, soft_wrap=True, style=style)


def flow_table(
    flows: Sequence[FlowSample], rates: Mapping[str, float], *, dead: str | None
) -> Table:
    """Flows as rows."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("flow", "state"):
        table.add_column(name, no_wrap=True)
    for name in ("records/s", "lag records", "lag s"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("lanes")
    for flow in flows:
        table.add_row(
            flow.flow,
            flow.state,
            f"{rates.get(flow.flow, 0.0):.0f}",
            "?" if flow.lag_records is None else str(flow.lag_records),
            seconds(flow.lag_seconds),
            lanes_by_worker(flow, dead=dead),
        )
    return table


def flow_lines(
    flows: Sequence[FlowSample], rates: Mapping[str, float], *, dead: str | None
) -> list[str]:
    """The same as plain lines; flows without lanes are left out."""
    return [
        f"  {flow.flow} {flow.state} {rates.get(flow.flow, 0.0):.0f}/s, "
        f"lag {'?' if flow.lag_records is None else flow.lag_records} ({seconds(flow.lag_seconds)} s), "
        f"{lanes_by_worker(flow, dead=dead)}"
        for flow in flows
        if flow.lanes
    ]


def lanes_by_worker(flow: FlowSample, *, dead: str | None) -> str:
    """The lanes of each worker; a killed worker is marked while the group still has it."""
    return (
        ", ".join(
            f"{worker} {'dead ' if worker == dead else ''}{numbers(owned)}"
            for worker, owned in sorted(flow.lanes.items())
        )
        or "no lanes yet"
    )


def verdict_table(verdict: DemoVerdict) -> Table:
    """How many records were written and found, by cluster and topic."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("on cluster", "in topic", "written on"):
        table.add_column(name, no_wrap=True)
    for name in ("acknowledged", "found"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in verdict.rows:
        style = None if row.found == row.acknowledged else "red"
        table.add_row(
            row.cluster, row.topic, row.origin, str(row.acknowledged), str(row.found), style=style
        )
    return table
