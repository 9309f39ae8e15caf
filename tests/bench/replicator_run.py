"""``replicator run`` as users start it: one process tree, one topology file."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from contender import Job, Running, launch

from replicator.testing.kit.ports import free_ports

Delivery = Literal["at-least-once", "exactly-once"]
EngineName = Literal["records", "batches"]
TARGET_ALIAS = "target"


def topology_file(job: Job) -> Path:
    """Where the job's topology file is, once a worker was started."""
    return job.directory / "topology.yaml"


@dataclass(frozen=True, slots=True)
class Replicator:
    """One way to run it."""

    delivery: Delivery = "exactly-once"
    lanes: int | Literal["auto"] = 1
    engine: EngineName = "records"
    worker_id: str = ""
    """A stable name, as every pod of a StatefulSet has: a restarted worker has its lanes at once."""
    groups: bool = True
    """Whether positions of consumer groups are carried over."""

    @property
    def name(self) -> str:
        """For tables."""
        lanes = f"{self.lanes} lane{'' if self.lanes == 1 else 's'}"
        named = ", --worker-id" if self.worker_id else ""
        alone = "" if self.groups else ", no groups"
        return f"replicator {self.engine}, {self.delivery}, {lanes}{named}{alone}"

    def start(self, job: Job) -> Running:
        """Starts a worker; a second call for the same job adds another worker."""
        (port,) = free_ports(1)
        path = topology_file(job)
        path.write_text(json.dumps(self.topology(job), indent=2))  # YAML reads JSON
        command = [sys.executable, "-m", "replicator", "run", "-f", str(path)]
        command += ["--http", f"127.0.0.1:{port}"]
        if self.worker_id:
            command += ["--worker-id", self.worker_id]
        return launch(
            command,
            directory=job.directory,
            label=f"replicator-{port}",
            environment=self.environment(),
        )

    def environment(self) -> dict[str, str] | None:
        """Its variables; None for those of the bench."""
        return None

    def topology(self, job: Job) -> dict[str, object]:
        """The topology file; names carry the job's alias, so that jobs never meet."""
        return {
            "apiVersion": "replicator/v1",
            "kind": "Topology",
            "metadata": {"name": f"bench-{job.alias}"},
            "spec": {
                "clusters": {
                    job.alias: job.source.topology_entry(),
                    TARGET_ALIAS: job.target.topology_entry(),
                },
                "links": [
                    {
                        "name": "bench",
                        "shape": "active-passive",
                        "active": job.alias,
                        "passive": TARGET_ALIAS,
                        "topics": {"include": list(job.topics)},
                        "naming": "prefix",
                        "delivery": self.delivery,
                        "engine": self.engine,
                        "lanes": self.lanes,
                        "sync": {"groups": {"enabled": self.groups}},
                    }
                ],
            },
        }
