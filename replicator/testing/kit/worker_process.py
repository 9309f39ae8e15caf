"""Real workers: `replicator run` as processes of their own, with their logs in files."""

import signal
import sys
import time
from pathlib import Path

from replicator.errors import ReplicatorError
from replicator.testing.kit.child_processes import ChildProcess, start_child

DRAIN_SECONDS = 25.0
_TAIL_LINES = 12


class WorkerProcess:
    """One worker; named, so that a person can follow its lanes."""

    def __init__(self, name: str, *, topology_file: Path, directory: Path) -> None:
        self.name = name
        self.log = directory / f"{name}.log"
        self.killed = False
        self._child: ChildProcess = start_child(
            [
                sys.executable, "-m", "replicator", "run",
                "-f", topology_file,
                "--worker-id", name,
                "--http", "127.0.0.1:0",
                "--log-format", "text",
            ],
            output=self.log,
        )  # fmt: skip

    @property
    def pid(self) -> int:
        """Process id."""
        return self._child.pid

    def check(self) -> None:
        """Checks that it still runs, unless it was killed on purpose.

        Raises:
            ReplicatorError: it ended by itself; the message shows the end of its log.
        """
        code = None if self.killed else self._child.exit_code()
        if code is not None:
            raise ReplicatorError(
                f"the worker ended by itself with exit code {code}; the end of its log:\n"
                + self.log_tail(),
                subject=self.name,
            )

    def kill(self) -> None:
        """SIGKILL: the worker neither commits nor leaves its group."""
        self.killed = True
        self._child.kill()

    def drain(self) -> tuple[int | None, float]:
        """SIGTERM; returns the exit code (None: it had to be killed) and how long it took."""
        started = time.monotonic()
        self._child.signal(signal.SIGTERM)
        ended = self._child.wait(DRAIN_SECONDS)
        took_seconds = time.monotonic() - started
        if not ended:
            self.kill()
            return None, took_seconds
        return self._child.exit_code(), took_seconds

    def stop_at_once(self) -> None:
        """Kills it in any state; for clean-up."""
        self._child.kill()

    def log_tail(self, lines: int = _TAIL_LINES) -> str:
        """The end of the log."""
        if not self.log.exists():
            return ""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])
