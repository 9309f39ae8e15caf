"""The last line of a command on Spark: what, how much, how long, verdict and report, made to be quoted."""

import time
from collections.abc import Callable, Mapping
from typing import Any

from replicator.cli.options import Output
from replicator.cli.output import out, say


class Closing:
    """Made when the work begins; ``say`` ends the command's output.

    The line follows the result on standard output where people read it, else it goes to standard error.
    """

    def __init__(self, what: str, output: Output = Output.TEXT) -> None:
        self._what = what
        self._output = output
        self._began = time.monotonic()

    def say(
        self, records: int, verdict: str, *, size: int = -1, unit: str = "records", report: str = ""
    ) -> None:
        """Says the line.

        Args:
            records: how many.
            verdict: how it ended, in a few words.
            size: bytes, where they are known.
            unit: what was counted.
            report: where more can be read, as a sentence without its full stop.
        """
        from replicator.spark.base.amounts import Amount, closing_line

        line = closing_line(
            self._what, Amount(records, size), unit=unit,
            seconds=time.monotonic() - self._began, verdict=verdict, report=report,
        )  # fmt: skip
        if self._output is Output.TEXT:
            out().print(line, markup=False, soft_wrap=True)
        else:
            say(line)


def unless_failed(conclude: Callable[[], None]) -> Callable[[object, object, object], None]:
    """For an ExitStack: concludes at the end and at an interruption; an error is its own last line."""

    def leave(_kind: object, error: object, _trace: object) -> None:
        if not isinstance(error, Exception):
            conclude()

    return leave


def named(counts: Mapping[str, Any], names: tuple[str, ...]) -> str:
    """``3 lost, 1 changed``: those that are not 0."""
    return ", ".join(f"{counts[name]:,} {name}" for name in names if counts[name])
