"""A real MirrorMaker 2 in dedicated mode between two clusters, and the commands that take over from it."""

import json
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from replicator.errors import RefusedError, ReplicatorError
from replicator.identifiers import ClusterAlias
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.mm2.topics.adopt import ConnectorProgress, read_progress
from replicator.testing import LocalCluster
from replicator.testing.checker.history import Seen
from replicator.testing.cluster.brokers.jars import find_java, mirror_jars, package_file
from replicator.testing.kit.child_processes import ChildProcess, start_child
from replicator.testing.kit.ports import free_ports
from replicator.topology.plan import ClusterPlan

COMMAND_SECONDS = 90.0
FLUSH_MS = 6_000
"""How often MirrorMaker 2 stores its progress; what it copies after that is copied again."""

_JVM = "-Xms64m -Xmx384m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Djava.awt.headless=true"


def exactly_once_settings() -> dict[str, str]:
    """What MirrorMaker 2 needs from ``east`` to ``west`` to copy exactly once."""
    (port,) = free_ports(1)
    return {
        "west.exactly.once.source.support": "enabled",
        "east.consumer.isolation.level": "read_committed",
        # Starting a task in this mode needs the workers' internal REST interface.
        "dedicated.mode.enable.internal.rest": "true",
        "listeners": f"http://127.0.0.1:{port}",
        # How long the cluster waits for a producer that was killed; a minute by default.
        "west.producer.transaction.timeout.ms": "15000",
    }


class AdoptScene:
    """One properties file, the topology made from it, and at most one MirrorMaker 2 and one worker."""

    def __init__(self, directory: Path, source: LocalCluster, target: LocalCluster) -> None:
        self.directory = directory
        self.source = source
        self.target = target
        self.properties = directory / "mm2.properties"
        self.topology = directory / "topology.yaml"
        self._mm2: ChildProcess | None = None
        self._worker: ChildProcess | None = None

    def write_properties(self, topics: Sequence[str], **more: str) -> None:
        source, target = self.source.name, self.target.name
        settings = {
            "clusters": f"{source}, {target}",
            f"{source}.bootstrap.servers": ",".join(self.source.bootstrap_servers),
            f"{target}.bootstrap.servers": ",".join(self.target.bootstrap_servers),
            f"{source}->{target}.enabled": "true",
            f"{source}->{target}.topics": ", ".join(topics),
            f"{target}.offset.flush.interval.ms": str(FLUSH_MS),
            "tasks.max": "2",
            "replication.factor": "1",
            "refresh.topics.interval.seconds": "1",
            "emit.heartbeats.enabled": "false",
            "emit.checkpoints.enabled": "false",
            "offset-syncs.topic.replication.factor": "1",
            "offset.storage.replication.factor": "1",
            "status.storage.replication.factor": "1",
            "config.storage.replication.factor": "1",
            **more,
        }
        self.properties.write_text("".join(f"{key} = {value}\n" for key, value in settings.items()))

    def start_mirror_maker(self) -> None:
        jars = mirror_jars()
        self._mm2 = start_child(
            [
                find_java(), *shlex.split(_JVM),
                f"-Dreplicator.log={self.directory / 'mm2-warnings.log'}",
                f"-Dlog4j2.configurationFile={package_file('log4j2.xml')}",
                "-cp", jars.classpath,
                "org.apache.kafka.connect.mirror.MirrorMaker", self.properties,
            ],
            output=self.directory / "mm2.log",
        )  # fmt: skip

    @property
    def mirror_maker(self) -> ChildProcess:
        assert self._mm2 is not None
        return self._mm2

    def mirror_log(self) -> str:
        log = self.directory / "mm2-warnings.log"
        return log.read_text(errors="replace")[-3000:] if log.exists() else ""

    def start_worker(self) -> None:
        self._worker = start_child(
            [
                sys.executable, "-m", "replicator", "run", "-f", self.topology, "--processes", "1",
                "--http", "127.0.0.1:0",
            ],
            output=self.directory / "worker.log",
        )  # fmt: skip

    def close(self) -> None:
        for child in (self._worker, self._mm2):
            if child is not None:
                child.kill()
                child.wait(20)

    # -- commands ---------------------------------------------------------------------------------

    def replicator(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "replicator", *map(str, arguments)],
            capture_output=True, text=True, check=False, timeout=COMMAND_SECONDS,
        )  # fmt: skip

    def make_topology(self) -> None:
        made = self.replicator("import-mm2", self.properties)
        assert made.returncode == 0, made.stderr
        self.topology.write_text(made.stdout)

    def adopt(self) -> subprocess.CompletedProcess[str]:
        return self.replicator(
            "import-mm2", self.properties, "--adopt", "-f", self.topology, "--yes", "-o", "json"
        )

    def lag(self) -> int | None:
        """Records still to be copied; None while a partition does not replicate."""
        answer = self.replicator("status", "-f", self.topology, "-o", "json")
        assert answer.returncode == 0, answer.stderr
        partitions: list[dict[str, Any]] = [
            partition
            for flow in json.loads(answer.stdout)["flows"]
            for topic in flow["topics"]
            for partition in topic["partitions"]
        ]
        if not partitions or any(each["state"] != "replicating" for each in partitions):
            return None
        return sum(each["lagRecords"] for each in partitions)

    # -- what MirrorMaker 2 left ------------------------------------------------------------------

    def progress(self) -> ConnectorProgress:
        """What it stored; nothing while that cannot be told."""
        target = self._target_plan()
        topic = f"mm2-offsets.{self.source.name}.internal"
        with ClusterAdmin(target, client_id="scene") as admin:
            if topic not in admin.topic_partitions():
                return ConnectorProgress({})
            try:
                return read_progress(target, admin, topic, self.source.name, client_id="scene")
            except ReplicatorError as error:
                # Its partitions get their leaders just now, or a transaction is open in it.
                if error.retriable or isinstance(error, RefusedError):
                    return ConnectorProgress({})
                raise

    def copied_beyond(self, copies: Sequence[str]) -> int:
        """How many records MirrorMaker 2 copied since it last stored its progress."""
        stored = sum(offset + 1 for offset in self.progress().last_copied.values())
        with ClusterAdmin(self._target_plan(), client_id="scene") as admin:
            sizes = admin.topic_partitions()
            keys = [(copy, number) for copy in copies for number in range(sizes[copy])]
            ends = admin.offsets(keys, "latest", isolation="read_uncommitted").values()
        return sum(end for end in ends if isinstance(end, int)) - stored

    def _target_plan(self) -> ClusterPlan:
        return ClusterPlan(
            alias=ClusterAlias(self.target.name),
            bootstrap_servers=tuple(self.target.bootstrap_servers),
        )


def repeated(found: Sequence[Seen]) -> int:
    """Copies beyond the first one of each record."""
    return sum(count - 1 for count in Counter(seen.id for seen in found).values())
