"""The child process that copies history for a pair: kept running while it is needed, never longer.

A process of its own, because it brings a Java runtime along and may be killed for its memory. It ends
with its worker however that ends: its standard input closes.
"""

import random
import subprocess
import sys
import threading
from pathlib import Path

import structlog

from replicator.backoff import Backoff
from replicator.clock import Clock
from replicator.control.reconcile.initial_backfill import CONTROLLER
from replicator.control.store.state import ControlState
from replicator.errors import ReplicatorError
from replicator.redaction import redact_text

RESTART = Backoff(2.0, 60.0)
STOP_SECONDS = 3.0
_LONG_ENOUGH_SECONDS = 120.0
"""A child that ran for so long did some work: its end is no reason to wait long for the next."""

log = structlog.get_logger("control")


class SparkProcess:
    """Used by the thread of its pair only."""

    def __init__(self, *, entry_module: str, topology_file: Path, flow: str, clock: Clock) -> None:
        """``entry_module`` is run with the topology file and the flow as arguments."""
        self._command = [sys.executable, "-m", entry_module, str(topology_file), flow]
        self._flow = flow
        self._clock = clock
        self._child: subprocess.Popen[bytes] | None = None
        self._began_at = 0.0
        self._again_at = 0.0
        self._failures = 0
        self._said: list[str] = []

    def keep(self, *, wanted: bool) -> ReplicatorError | None:
        """Starts or restarts the child; returns why the last one failed, while that matters.

        A child whose work is done is not wanted any more and ends by itself.
        """
        self._notice_end()
        if not wanted:
            self._failures = 0
            return None
        if self._child is None and self._clock.monotonic() >= self._again_at:
            self._start()
        if not self._failures:
            return None
        why = self._said[-1] if self._said else "it gave no reason"
        return ReplicatorError(
            f"history is not copied: {why.rstrip('.')}",
            subject="flow",
            remedy=f"It is retried automatically; or run: replicator bulk-sync --flow '{self._flow}'",
        )

    def end(self) -> None:
        """Asks the child to end before its work is done; another worker's child goes on with it."""
        self._notice_end()
        if self._child is not None:
            self._child.terminate()

    def close(self) -> None:
        """Ends the child and waits for it."""
        child = self._child
        if child is None:
            return
        child.terminate()
        try:
            child.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        self._notice_end()

    def _start(self) -> None:
        self._began_at = self._clock.monotonic()
        self._child = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        log.info("history is copied in bulk", flow=self._flow, pid=self._child.pid)
        threading.Thread(
            target=self._hear, args=(self._child,), name=f"seed-{self._flow}", daemon=True
        ).start()

    def _hear(self, child: "subprocess.Popen[bytes]") -> None:
        said: list[str] = []
        if child.stderr is not None:
            with child.stderr as lines:
                for line in lines:
                    text = redact_text(line.decode(errors="replace").rstrip())
                    if text:
                        said = [*said[-4:], text]
                        self._said = said
                        log.info("bulk sync", flow=self._flow, said=text)

    def _notice_end(self) -> None:
        child = self._child
        if child is None or child.poll() is None:
            return
        self._child = None
        if child.stdin is not None:
            child.stdin.close()
        now = self._clock.monotonic()
        if child.returncode == 0:
            self._failures = 0
            return
        ran_long = now - self._began_at > _LONG_ENOUGH_SECONDS
        self._failures = 1 if ran_long else self._failures + 1
        self._again_at = now + RESTART.seconds(self._failures, random.random)
        log.warning("bulk sync ended", flow=self._flow, code=child.returncode)


def asked_by_controller(control: ControlState, source: str) -> bool:
    """Whether there is history that a worker has to see to."""
    return any(
        record.state != "done" and record.purpose == "history" and record.by == CONTROLLER
        for record in control.seeds(source)
    )
