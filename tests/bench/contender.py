"""What every measured copier has in common: start it for a job, look at it, end it."""

import contextlib
import os
import signal
import tempfile
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from payload import Codec
from usage import ProcessTree

from replicator.testing import LocalCluster
from replicator.testing.kit.child_processes import ChildProcess, start_child

_LOG_LINES = 40
_STOP_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Job:
    """One copy: the same topics for everybody, under an alias that nobody used before.

    The alias goes into every name that a copier keeps on the target (topics, groups, progress), so
    that contenders never meet each other's leftovers on the shared brokers. ``codec`` is that of the source's batches.
    """

    source: LocalCluster
    target: LocalCluster
    topics: tuple[str, ...]
    records: int = 0
    partitions: int = 4
    codec: Codec = "none"
    alias: str = field(default_factory=lambda: f"s{uuid.uuid4().hex[:8]}")
    directory: Path = field(
        default_factory=lambda: Path(tempfile.mkdtemp(prefix="replicator-bench-"))
    )

    def target_topic(self, topic: str) -> str:
        """Name on the target; all contenders prefix with the alias."""
        return f"{self.alias}.{topic}"

    @property
    def target_topics(self) -> tuple[str, ...]:
        """Names on the target, in the order of ``topics``."""
        return tuple(map(self.target_topic, self.topics))


class Contender(Protocol):
    """A way to copy."""

    @property
    def name(self) -> str:
        """For tables."""
        ...

    def start(self, job: Job) -> "Running":
        """Starts copying; may be called again for the same job after the copier ended."""
        ...


class Running:
    """A copier that runs, in its own process group."""

    def __init__(self, child: ChildProcess, *, log: Path, started_at: float) -> None:
        self._child = child
        self._log = log
        self.started_at = started_at
        self.tree = ProcessTree(child.pid)

    @property
    def alive(self) -> bool:
        """Whether its first process still runs."""
        return self._child.exit_code() is None

    def log_tail(self) -> str:
        """The end of its output."""
        return "\n".join(self.output().splitlines()[-_LOG_LINES:]) or "(no output)"

    def output(self) -> str:
        """All of its output."""
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    def stop(self) -> float:
        """SIGTERM, then SIGKILL if it does not end; returns the seconds it took."""
        began = time.monotonic()
        self._child.signal(signal.SIGTERM)
        if not self._child.wait(_STOP_SECONDS):
            self.kill()
        return time.monotonic() - began

    def kill(self) -> None:
        """SIGKILL to its first process; the others must follow by themselves."""
        self._child.kill()

    def end_at_once(self) -> None:
        """SIGKILL to all of its processes."""
        known = self.tree.known()
        self._child.kill()
        for pid in known:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def launch(
    command: Sequence[str | Path],
    *,
    directory: Path,
    label: str,
    environment: Mapping[str, str] | None = None,
) -> Running:
    """Starts a program with its output in a file of the job's directory."""
    log = directory / f"{label}.log"
    started_at = time.monotonic()
    child = start_child(command, output=log, environment=environment)
    return Running(child, log=log, started_at=started_at)
