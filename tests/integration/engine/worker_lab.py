"""A whole worker as a user starts it, on a topology file that a test may edit."""

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from topology_files import topology_text

from replicator.cli.main import run_command
from replicator.testing import LocalCluster, wait_until
from replicator.testing.kit.child_processes import ChildProcess, start_child

START_SECONDS = 90.0
PATIENCE_SECONDS = 120.0


class WorkerLab:
    """One topology over some clusters, and at most one worker that runs it."""

    def __init__(self, directory: Path, name: str) -> None:
        self.name = name
        self.file = directory / "topology.yaml"
        self.log = directory / "worker.log"
        self.clusters: dict[str, dict[str, Any]] = {}
        self.links: list[dict[str, Any]] = []
        self._child: ChildProcess | None = None
        self._url = ""

    def cluster(self, cluster: LocalCluster, *, user: str | None = None) -> None:
        self.clusters[cluster.name] = dict(cluster.topology_entry(user))

    def link(self, name: str, source: str, target: str, topics: list[str], **policy: Any) -> None:
        self.links.append(
            {
                "name": name,
                "shape": "active-passive",
                "active": source,
                "passive": target,
                "topics": {"include": topics},
                **policy,
            }
        )

    def write(self) -> None:
        """Writes the file as a running worker sees edits: at once and whole."""
        defaults = {"discoveryInterval": "1s"}
        self.replace(topology_text(self.name, self.clusters, self.links, defaults=defaults))

    def replace(self, text: str) -> None:
        fresh = self.file.with_suffix(".new")
        fresh.write_text(text)
        fresh.rename(self.file)

    def start(self) -> None:
        """Starts the worker on the file as it should be now; returns at once."""
        self.write()
        self._url = ""
        self.log.unlink(missing_ok=True)
        self._child = start_child(
            [
                sys.executable, "-m", "replicator", "run", "-f", self.file, "--processes", "1",
                "--http", "127.0.0.1:0", "--log-format", "json",
            ],
            output=self.log,
        )  # fmt: skip

    def stop(self) -> None:
        """Kills the worker; its lane processes end with it."""
        if self._child is not None:
            self._child.kill()
            self._child.wait(20)
            self._child = None

    def drain(self) -> None:
        """Stops the worker as Kubernetes does: it leaves its groups and takes its record back."""
        assert self._child is not None
        self._child.signal(signal.SIGTERM)
        assert self._child.wait(30), self.log_text()[-3000:]
        self._child = None

    def command(self, *arguments: str) -> dict[str, Any]:
        """Runs another command of the product on the file, in this process, and reads its JSON."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = run_command([*arguments, "-f", str(self.file), "-o", "json"])
        assert code == 0, err.getvalue()
        return json.loads(out.getvalue())

    # -- what it says -------------------------------------------------------------------------

    @property
    def pid(self) -> int:
        assert self._child is not None
        return self._child.pid

    def pids(self) -> list[int]:
        """The worker and its lane processes."""
        listing = subprocess.run(
            ["ps", "-eo", "pid=,pgid="], capture_output=True, text=True, check=True
        ).stdout
        rows = [line.split() for line in listing.splitlines()]
        return [int(pid) for pid, group in rows if int(group) == self.pid]

    def log_text(self) -> str:
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def log_lines(self) -> list[dict[str, Any]]:
        return [
            json.loads(line) for line in self.log_text().splitlines()
            if line.startswith("{") and line.endswith("}")
        ]  # fmt: skip

    def url(self) -> str:
        if not self._url:
            self._url = wait_until(
                lambda: next((line["url"] for line in self.log_lines() if "url" in line), ""),
                timeout_seconds=START_SECONDS,
                describe=lambda: f"the worker's HTTP face: {self.log_text()[-3000:]}",
            )
        return self._url

    def text(self, path: str) -> str:
        with urllib.request.urlopen(f"{self.url()}{path}", timeout=30) as answer:  # noqa: S310  our own address
            return answer.read().decode()

    def readiness(self) -> str:
        """What ``/readyz`` says, whether it is ready or not."""
        try:
            return self.text("/readyz")
        except urllib.error.HTTPError as unready:
            with unready:
                return unready.read().decode()

    def flow(self, flow: str) -> dict[str, Any]:
        """One flow of the status."""
        flows = json.loads(self.text("/api/v1/status"))["flows"]
        return next(each for each in flows if each["flow"] == flow)

    def problems(self, flow: str) -> dict[str, dict[str, str]]:
        """The flow's problems by code."""
        return {each["code"]: each for each in self.flow(flow)["problems"]}

    def metric(self, name: str, **labels: str) -> float:
        """The sum of a metric over all series with these labels."""
        total = 0.0
        for line in self.text("/metrics").splitlines():
            if line.startswith(name) and all(f'{k}="{v}"' in line for k, v in labels.items()):
                total += float(line.rsplit(" ", 1)[1])
        return total

    def takeovers(self) -> list[tuple[str, int]]:
        """Lane processes with their starting time: another one is another take-over."""
        found = []
        for pid in self.pids():
            stat = Path(f"/proc/{pid}/stat")
            if stat.exists():
                found.append((str(pid), int(stat.read_text().rsplit(") ", 1)[1].split()[19])))
        return sorted(found)

    def until(self, condition, describe: str) -> Any:
        return wait_until(
            condition,
            timeout_seconds=PATIENCE_SECONDS,
            interval_seconds=0.25,
            describe=lambda: f"{describe}; the worker's log ends: {self.log_text()[-4000:]}",
        )

    def secrets_shown(self, *secrets: str) -> list[str]:
        """Where any of the secrets can be read that is not a file of the user's own."""
        places = {"log": self.log_text()}
        for path in ("/api/v1/status", "/api/v1/topology", "/metrics"):
            places[path] = self.text(path)
        for pid in self.pids():
            for name in ("cmdline", "environ"):
                try:
                    places[f"{name} of {pid}"] = (
                        Path(f"/proc/{pid}/{name}").read_bytes().decode(errors="replace")
                    )
                except OSError:
                    continue  # it ended meanwhile
        assert str(self.pid) in {place.split()[-1] for place in places}, os.getpid()
        return [place for place, text in places.items() if any(each in text for each in secrets)]
