"""A standalone Spark cluster from the installed wheel: one master, two workers, small memory.

Executors run the bare Python of this installation: what tasks need is not there unless it is sent.
"""

import contextlib
import json
import os
import signal
import sys
import urllib.request
from pathlib import Path

import pyspark

from replicator.spark.session.executors import JOB_GROUP
from replicator.testing import wait_until
from replicator.testing.kit.child_processes import start_child
from replicator.testing.kit.ports import free_ports

HOST = "127.0.0.1"
BARE_PYTHON = os.path.realpath(sys.executable)
_START_SECONDS = 120
_QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Small data on a busy machine: compiling well costs more than it gives."""


class StandaloneSpark:
    """Starts at once; ``close`` ends master, workers and executors."""

    def __init__(self, folder: Path, *, workers: int = 2) -> None:
        self._folder = folder
        self._home = Path(pyspark.__file__).parent
        self.seen = ""
        self.ui_port, port = free_ports(2)
        self.master = f"spark://{HOST}:{port}"
        self._children = [
            self._start(
                "master", "Master", "--host", HOST, "--port", str(port), "--webui-port", "0"
            )
        ]
        self._said("master", "I have been elected leader")
        for number in range(workers):
            self._children.append(
                self._start(
                    f"worker-{number}", "Worker", "--host", HOST, "--cores", "1", "--memory", "1g",
                    "--webui-port", "0", "--work-dir", folder / f"work-{number}", self.master,
                )
            )  # fmt: skip
        for number in range(workers):
            self._said(f"worker-{number}", "Successfully registered with master")

    @property
    def options(self) -> list[str]:
        """What a command is given to run here."""
        settings = {
            "spark.driver.host": HOST, "spark.driver.bindAddress": HOST,
            "spark.driver.memory": "512m", "spark.executor.memory": "512m",
            "spark.ui.port": str(self.ui_port), "spark.sql.shuffle.partitions": "4",
            "spark.pyspark.python": BARE_PYTHON,
            "spark.driver.extraJavaOptions": _QUICK, "spark.executor.extraJavaOptions": _QUICK,
        }  # fmt: skip
        confs = [part for pair in settings.items() for part in ("--conf", "=".join(pair))]
        return ["--master", self.master, *confs]

    def busy_executors(self) -> list[str]:
        """Ids of executors that run a task now, of a job that does the command's own work."""
        try:
            (application,) = self._asked("")
            jobs = self._asked(f"/{application['id']}/jobs?status=running")
            executors = self._asked(f"/{application['id']}/executors")
        except (OSError, ValueError) as error:
            self.seen = repr(error)  # its driver is not there yet, or is busy
            return []
        self.seen = f"{jobs} {executors}"
        if not any(job.get("jobGroup") != JOB_GROUP for job in jobs):
            return []
        return [one["id"] for one in executors if one["id"] != "driver" and one["activeTasks"]]

    def kill_executor(self, number: str) -> None:
        """SIGKILL to the JVM of an executor."""
        found = [
            int(process.name)
            for process in Path("/proc").iterdir()
            if process.name.isdecimal() and self._is_executor(process, number)
        ]
        assert len(found) == 1, found
        os.kill(found[0], signal.SIGKILL)

    def _is_executor(self, process: Path, number: str) -> bool:
        with contextlib.suppress(OSError):
            words = (process / "cmdline").read_text().split("\0")
            if any(word.endswith("CoarseGrainedExecutorBackend") for word in words):
                own = (process / "cwd").readlink().is_relative_to(self._folder)
                return own and words[words.index("--executor-id") + 1] == number
        return False

    def close(self) -> None:
        """Ends workers, which end their executors, then the master."""
        for child in reversed(self._children):
            child.signal(signal.SIGTERM)
        for child in self._children:
            if not child.wait(20):
                child.kill()

    def log(self, name: str) -> str:
        """What a process said."""
        file = self._folder / f"{name}.log"
        return file.read_text(errors="replace") if file.exists() else ""

    def _start(self, name, role, *arguments):
        return start_child(
            [self._home / "bin" / "spark-class", f"org.apache.spark.deploy.{role.lower()}.{role}",
             *arguments],
            output=self._folder / f"{name}.log",
            environment={
                "SPARK_HOME": str(self._home), "SPARK_DAEMON_MEMORY": "256m", "SPARK_DAEMON_JAVA_OPTS": _QUICK, "PYTHONPATH": "",
                "SPARK_LOCAL_IP": HOST,
            },
        )  # fmt: skip

    def _said(self, name, text):
        wait_until(
            lambda: text in self.log(name),
            timeout_seconds=_START_SECONDS,
            describe=lambda: f"{name} to say '{text}'\n{self.log(name)[-3000:]}",
        )

    def _asked(self, path):
        url = f"http://{HOST}:{self.ui_port}/api/v1/applications{path}"
        with urllib.request.urlopen(url, timeout=20) as answer:
            return json.load(answer)
