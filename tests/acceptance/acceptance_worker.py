"""One real worker: ``python -m replicator run``, its lane processes, its log and its HTTP face."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from container import contained

from replicator.testing import wait_until
from replicator.testing.kit.child_processes import ChildProcess, start_child
from replicator.testing.kit.waiting import NotInTimeError

START_SECONDS = 60.0
HTTP_SECONDS = 30.0
GRACE_SECONDS = 20.0


def in_release(release: Path) -> dict[str, str]:
    """The environment in which ``python -m replicator`` is the one in that folder."""
    # Without the second, Python looks into the working directory first.
    return {"PYTHONPATH": str(release), "PYTHONSAFEPATH": "1"}


class WorkerProcess:
    """A worker and its lane processes, which share its process group."""

    headers: Mapping[str, str] = {}
    """Of each request: a token, where it asks for one."""

    def __init__(
        self,
        topology: Path,
        *,
        log: Path,
        options: tuple[str, ...] = (),
        container: Path | None = None,
        release: Path | None = None,
    ) -> None:
        """Starts it; ``release`` is a folder with another release of the program.

        ``container`` starts it as a container engine does, with that folder to write to.
        """
        self.log = log
        self._url = ""
        self._paused = self._ended = False
        command = [
            sys.executable, "-m", "replicator", "run", "-f", str(topology),
            "--http", "127.0.0.1:0", "--log-format", "json",
            "--grace", f"{GRACE_SECONDS:g}", *options,
        ]  # fmt: skip
        environment = {} if release is None else in_release(release)
        if container is not None:
            command, environment = contained(command, scratch=container)
        self._child: ChildProcess = start_child(command, output=log, environment=environment)

    @property
    def pid(self) -> int:
        """Of the worker itself."""
        return self._child.pid

    @property
    def alive(self) -> bool:
        """Whether the worker itself runs; a paused one does."""
        return self._child.exit_code() is None

    @property
    def answering(self) -> bool:
        """Whether it can be asked."""
        return self.alive and not self._paused

    def group_pids(self) -> set[int]:
        """Every process of the worker that still runs: itself and its lane processes."""
        listing = subprocess.run(
            ["ps", "-eo", "pid=,pgid=,stat="], capture_output=True, text=True, check=True
        ).stdout
        rows = [line.split() for line in listing.splitlines()]
        return {
            int(pid) for pid, group, state in rows
            if int(group) == self.pid and not state.startswith("Z")
        }  # fmt: skip

    def lane_pids(self) -> set[int]:
        """The lane processes alone."""
        return self.group_pids() - {self.pid}

    @staticmethod
    def kill_lane_process(pid: int) -> None:
        """SIGKILL to one lane process; the worker has to notice."""
        os.kill(pid, signal.SIGKILL)

    def kill(self) -> None:
        """SIGKILL to the worker itself; its lane processes have to notice by themselves."""
        self._child.kill()

    def terminate(self) -> None:
        """SIGTERM to the worker itself; does not wait."""
        self._child.signal(signal.SIGTERM)

    def exit_code(self, *, timeout_seconds: float) -> int | None:
        """Waits for the end; ``None`` when it did not come in time."""
        self._child.wait(timeout_seconds)
        return self._child.exit_code()

    def pause(self) -> None:
        """SIGSTOP to the worker and to all its lane processes."""
        self._paused = True
        os.killpg(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT to all of them."""
        os.killpg(self.pid, signal.SIGCONT)
        self._paused = False

    def end(self) -> None:
        """SIGKILL to everything, as if its machine was lost; returns when nothing of it runs."""
        if self._ended:
            return  # its number may be somebody else's by now
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._child.kill()
        wait_until(
            lambda: not self.group_pids(),
            timeout_seconds=START_SECONDS,
            describe=lambda: f"processes {self.group_pids()} to be gone",
        )
        self._ended = True

    def standing(self) -> str:
        """Where the threads of its processes are now, and the last of its log: for a failure that has to be explained.

        Each place once, with how many threads are there.
        """
        if self._ended:
            return f"worker {self.pid} was ended"
        last = self.log_tail(3)
        before = self.log.stat().st_size
        pids = sorted(self.group_pids())
        for pid in pids:
            size = self.log.stat().st_size
            with contextlib.suppress(ProcessLookupError, NotInTimeError):
                os.kill(pid, signal.SIGUSR1)  # a process that is stopped never answers
                wait_until(
                    lambda size=size: self.log.stat().st_size > size,
                    timeout_seconds=2.0, describe="stacks", interval_seconds=0.2,
                )  # fmt: skip
        with self.log.open("rb") as log:
            log.seek(before)
            text = log.read().decode(errors="replace")
        # By thread, as a worker has its lane processes write theirs once more. Where our own code waits says more than in
        # which call of the standard library.
        stands = {
            thread: next((line for line in frames if "replicator/" in line), frames[0])
            for thread, stack in re.findall(r"hread (0x\w+).*:\n((?:  File .*\n)+)", text)
            if (frames := [line.strip() for line in stack.splitlines()])
        }
        ours = Counter(stands.values())
        places = [f"{count} x {place}" for place, count in ours.most_common()]
        return "\n".join([last, f"processes {pids}, threads:", *places])

    # -- what it says -------------------------------------------------------------------------

    def get(self, path: str) -> Any:
        """JSON of a GET; an answer such as 503 is an answer."""
        try:
            # The worker's own loopback address.
            asked = urllib.request.Request(f"{self.url()}{path}", headers=dict(self.headers))  # noqa: S310
            with urllib.request.urlopen(asked, timeout=HTTP_SECONDS) as answer:  # noqa: S310
                return json.load(answer)
        except urllib.error.HTTPError as refused:
            with refused:
                return json.load(refused)

    def status(self) -> dict[str, dict[str, Any]]:
        """Flows of ``/api/v1/status`` by ``source->target``; asked of the clusters at this moment."""
        return {flow["flow"]: flow for flow in self.get("/api/v1/status")["flows"]}

    def url(self) -> str:
        """Where it answers; waits until it does."""
        if not self._url:
            self._url = wait_until(
                lambda: next((line["url"] for line in self.log_lines() if "url" in line), ""),
                timeout_seconds=START_SECONDS,
                describe=lambda: f"the worker's HTTP face\n{self.log_tail()}",
            )
        return self._url

    def log_lines(self) -> list[dict[str, Any]]:
        """The structured lines of its log; anything else in there is left out."""
        text = self.log.read_text(errors="replace")
        return [
            json.loads(line)
            for line in text.splitlines()
            if line.startswith("{") and line.endswith("}")
        ]

    def surprises(self) -> list[str]:
        """Lines that no fault excuses: errors nobody had thought of."""
        text = self.log.read_text(errors="replace")
        signs = ("Traceback", "unexpectedly", "Fatal Python error")
        return [line for line in text.splitlines() if any(sign in line for sign in signs)]

    def log_tail(self, lines: int = 40) -> str:
        """The last lines of its log."""
        text = self.log.read_text(errors="replace").splitlines()
        return "\n".join([f"--- {self.log.name} (worker {self.pid})", *text[-lines:]])
