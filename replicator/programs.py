"""Programs run to their end, with a time limit; their output is kept."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from replicator.redaction import redact_text


@dataclass(frozen=True, slots=True)
class ProgramResult:
    """What became of a program.

    Attributes:
        output: standard output and standard error as they were written, without secrets.
        problem: why it failed, in words; empty when it ended with exit code 0.
    """

    output: str
    problem: str = ""

    @property
    def last_line(self) -> str:
        """The last line of the output that holds something."""
        lines = self.output.strip().splitlines()
        return lines[-1] if lines else "no output"


def run_program(
    command: Sequence[str], *, timeout_seconds: float, environment: Mapping[str, str] | None = None
) -> ProgramResult:
    """Runs a program without a shell and without input; never raises for what the program does.

    Blocking. A program that takes longer than the timeout is killed. ``environment`` is added to that of
    this process.
    """
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=timeout_seconds,
            env={**os.environ, **(environment or {})},
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        output = _text(late.stdout or b"")
        return ProgramResult(output, f"not done in {timeout_seconds:g} s")
    except OSError as error:
        return ProgramResult("", f"cannot be run: {error.strerror or error}")
    output = _text(done.stdout)
    return ProgramResult(output, f"exit code {done.returncode}" if done.returncode else "")


def _text(output: bytes) -> str:
    return redact_text(output.decode(errors="replace"))
