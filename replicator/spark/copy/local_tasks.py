"""Ranges copied in plain processes of this machine: as many at once as there are cores, no Java, no Spark.

A process that dies is replaced, and its range goes on at its checkpoint, as a task of Spark would.
"""

import contextlib
import os
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from typing import IO, ClassVar

from replicator.errors import FencedError, ReplicatorError
from replicator.spark.base.failures import as_replicator_error
from replicator.spark.base.java_errors import SparkJobError
from replicator.spark.copy.task import CopyOrder, CopyResult
from replicator.spark.copy.task_messages import TaskFailure, decode_answer, encode
from replicator.spark.session.settings import TASK_FAILURES

ENTRY = "replicator.spark.copy.task_process"
GRACE_SECONDS = 2.0
_WORTH_ANOTHER = {SparkJobError.code, FencedError.code}
"""Codes of failures that another attempt may not meet again: an unforeseen error, or a leftover task that interfered.
Whatever else a range fails with, it has waited for that."""
_CPU_QUOTA = Path("/sys/fs/cgroup/cpu.max")


class TaskProcessDiedError(ReplicatorError):
    """A process that copied a range ended before it had an answer."""

    retriable = True
    code = "COPY_PROCESS_DIED"


class LocalTasks:
    """Runs orders in processes; for one thread, ``close`` for any."""

    session: ClassVar[None] = None

    def __init__(self, at_once: int, *, debug: bool = False, entry: str = ENTRY) -> None:
        """Starts nothing yet.

        Args:
            at_once: processes at most.
            debug: whether what the processes say is shown.
            entry: the module that they run.
        """
        self.at_once = at_once
        self.master = f"processes[{at_once}]"
        self._debug = debug
        self._entry = entry
        self._lock = threading.Lock()
        self._running: set[_Process] = set()
        self._over = False
        self._failure: ReplicatorError | None = None

    def copy(self, orders: Iterable[CopyOrder]) -> tuple[CopyResult, ...]:
        """Copies all ranges, in the order given as processes become free.

        Raises:
            ReplicatorError: a range was refused or stood still for too long, or its process died several times;
                the others end with it, and a later run goes on.
        """
        listed = list(orders)
        waiting = deque(enumerate(listed))
        results: dict[int, CopyResult] = {}
        threads = [
            threading.Thread(target=self._serve, args=(waiting, results), daemon=True)
            for _ in range(min(self.at_once, len(listed)))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self._failure is not None:
            raise self._failure
        if len(results) < len(listed):
            raise TaskProcessDiedError(
                "the copy was ended before it was done",
                remedy="Run it again: it continues where it was.",
            )
        return tuple(results[number] for number in range(len(listed)))

    def close(self) -> None:
        """Ends all processes; what they have not committed is aborted by the next run or by time."""
        with self._lock:
            self._over = True
            running = list(self._running)
        for process in running:
            process.terminate()
        for process in running:
            process.end()

    def _serve(
        self, waiting: "deque[tuple[int, CopyOrder]]", results: dict[int, CopyResult]
    ) -> None:
        """One process at a time, for as long as there are orders."""
        process: _Process | None = None
        while not self._over:
            try:
                number, order = waiting.popleft()
            except IndexError:
                break
            for attempt in range(1, TASK_FAILURES + 1):
                try:
                    if process is None:
                        process = self._started()
                    results[number] = process.asked(order)
                    break
                except ReplicatorError as error:
                    if self._over:
                        return
                    died = isinstance(error, TaskProcessDiedError)
                    if died:
                        self._forget(process)
                        process = None
                    hopeless = not died and error.code not in _WORTH_ANOTHER
                    if hopeless or attempt == TASK_FAILURES:
                        self._failure = self._failure or error
                        self.close()
                        return
        self._forget(process)

    def _started(self) -> "_Process":
        with self._lock:
            if self._over:
                raise TaskProcessDiedError("the copy was ended")
            try:
                process = _Process(self._entry, debug=self._debug)
            except OSError as error:
                raise TaskProcessDiedError(
                    f"no process to copy with can be started ({error.strerror or error})",
                    remedy="Check the limits of this machine on memory and processes, then run it again.",
                ) from error
            self._running.add(process)
            return process

    def _forget(self, process: "_Process | None") -> None:
        if process is not None:
            process.end()
            with self._lock:
                self._running.discard(process)


class _Process:
    """A process and its two pipes."""

    def __init__(self, entry: str, *, debug: bool) -> None:
        self._words: IO[bytes] | None = None if debug else tempfile.TemporaryFile()  # noqa: SIM115
        # A group of its own: Ctrl-C on a terminal is for the driver.
        self._child = subprocess.Popen(
            [sys.executable, "-m", entry], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=self._words, process_group=0,
        )  # fmt: skip

    def asked(self, order: CopyOrder) -> CopyResult:
        """The result of a range.

        Raises:
            TaskProcessDiedError: there is none.
            ReplicatorError: what the task raised.
        """
        orders, answers = self._child.stdin, self._child.stdout
        if orders is None or answers is None:
            raise RuntimeError("the process has no pipes")
        try:
            orders.write(encode(order))
            orders.flush()
            answer = decode_answer(answers.readline())
        except (OSError, ValueError) as error:  # a line that is not whole is a ValueError too
            raise self._died(order) from error
        if isinstance(answer, TaskFailure):
            raise as_replicator_error(answer.text)
        return answer

    def terminate(self) -> None:
        """Asks it to end."""
        self._child.terminate()

    def end(self) -> None:
        """Ends it; from any thread."""
        self.terminate()
        try:
            self._child.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
        for pipe in (self._child.stdin, self._child.stdout, self._words):
            if pipe is not None:
                with contextlib.suppress(OSError, ValueError):
                    pipe.close()

    def _died(self, order: CopyOrder) -> TaskProcessDiedError:
        code = self._child.wait()
        how = f"was killed by signal {-code}" if code < 0 else f"ended with {code}"
        said = self._last_words()
        return TaskProcessDiedError(
            f"the process that copied it {how}{said and f': {said}'}",
            subject=f"{order.work.topic}/{order.work.partition}",
            remedy="Check the memory of this machine, then run it again: it continues where it was.",
        )

    def _last_words(self) -> str:
        if self._words is None:
            return ""
        try:
            self._words.seek(0)
            lines = self._words.read().decode(errors="replace").split("\n")
        except ValueError:
            return ""
        return next((line.strip() for line in reversed(lines) if line.strip()), "")


def usable_cores() -> int:
    """The cores that this process may use: those it is bound to, and no more than its container's quota."""
    bound = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
    )
    try:
        quota, period = _CPU_QUOTA.read_text().split()[:2]
        return max(1, min(bound, -(-int(quota) // int(period))))
    except (OSError, ValueError):  # no limit, or no such file
        return max(1, bound)
