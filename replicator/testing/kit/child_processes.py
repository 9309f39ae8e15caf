"""Child processes that never outlive this process, however it ends.

On Linux the kernel kills a child whose parent is gone (``PR_SET_PDEATHSIG``). That flag has two
traps: it must be set inside the child before ``exec``, and it fires when the *thread* that started
the child ends. So a tiny launcher sets it and then becomes the program, and every child is started
from one thread that lives as long as this process does. Elsewhere an ``atexit`` hook does the work.
"""

import atexit
import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path

# The check of the parent closes the gap in which the parent died before prctl took effect.
_LAUNCHER = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)
if os.getppid() != int(sys.argv[1]):
    os._exit(1)
os.execvp(sys.argv[2], sys.argv[2:])
"""

_Task = tuple["Future[subprocess.Popen[bytes]]", Callable[[], "subprocess.Popen[bytes]"]]


class ChildProcess:
    """One running program with its output in a file."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process

    @property
    def pid(self) -> int:
        """Process id, which is also the program's own (the launcher becomes the program)."""
        return self._process.pid

    def exit_code(self) -> int | None:
        """What the program ended with, or ``None`` while it runs."""
        return self._process.poll()

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal; a program that has ended already is no error."""
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(number)

    def wait(self, timeout_seconds: float) -> bool:
        """Waits for the end; returns whether it came in time."""
        try:
            self._process.wait(timeout_seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def kill(self) -> None:
        """SIGKILL (a stopped program dies of it too), and waits until it is gone."""
        if self._process.poll() is None:
            self.signal(signal.SIGKILL)
            self._process.wait()
        _children.discard(self)


class _Starter:
    """The one thread that starts children; it ends only with the process."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._tasks: queue.SimpleQueue[_Task] = queue.SimpleQueue()
        threading.Thread(target=self._run, name="child-starter", daemon=True).start()

    def start(self, action: Callable[[], "subprocess.Popen[bytes]"]) -> "subprocess.Popen[bytes]":
        done: Future[subprocess.Popen[bytes]] = Future()
        self._tasks.put((done, action))
        return done.result()

    def _run(self) -> None:
        while True:
            done, action = self._tasks.get()
            try:
                done.set_result(action())
            except OSError as error:
                done.set_exception(error)


_lock = threading.Lock()
_starter: list[_Starter] = []
_children: set[ChildProcess] = set()


def start_child(
    command: Sequence[str | Path],
    *,
    output: Path,
    environment: Mapping[str, str] | None = None,
) -> ChildProcess:
    """Starts a program in its own session; it is killed when this process ends.

    Its own session keeps Ctrl-C in a terminal from reaching it before it could be stopped in order.

    Args:
        command: program and arguments.
        output: file that both stdout and stderr are appended to.
        environment: added to this process's environment.

    Raises:
        OSError: when the program cannot be started.
    """
    argv = [str(part) for part in command]
    if sys.platform == "linux":
        argv = [sys.executable, "-I", "-S", "-c", _LAUNCHER, str(os.getpid()), *argv]

    def action() -> "subprocess.Popen[bytes]":
        with output.open("ab") as sink:
            return subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(environment or {})},
                start_new_session=True,
            )

    with _lock:
        if not _starter or _starter[0].pid != os.getpid():  # a forked child has no such thread
            _starter[:] = [_Starter()]
        starter = _starter[0]
    child = ChildProcess(starter.start(action))
    _children.add(child)
    return child


@atexit.register
def _kill_all() -> None:
    for child in list(_children):
        child.kill()
