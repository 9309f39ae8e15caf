"""Apache MirrorMaker 2 in dedicated mode: the yardstick.

Tuned as its users are told to (reference sets of vendors for high volume): four tasks, producer
batches of 320 KiB, linger 100 ms, larger fetches, polls of more records, and the codec of what is copied. The heap is that of Kafka's
own Connect start script.
"""

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from contender import Job, Running, launch

from replicator.testing import LocalCluster
from replicator.testing.cluster.brokers.jars import find_java, mirror_jars, package_file
from replicator.testing.kit.ports import free_ports

Tuning = Literal["default", "tuned"]
Delivery = Literal["at-least-once", "exactly-once"]

TARGET_ALIAS = "target"
_JVM = (
    "-Xms256m -Xmx2g -server -XX:+UseG1GC -XX:MaxGCPauseMillis=20 "
    "-XX:InitiatingHeapOccupancyPercent=35 -XX:+ExplicitGCInvokesConcurrent -Djava.awt.headless=true"
)


@dataclass(frozen=True, slots=True)
class MirrorMaker2:
    """One way to run it."""

    tuning: Tuning = "tuned"
    delivery: Delivery = "at-least-once"

    @property
    def name(self) -> str:
        """For tables."""
        once = ", exactly-once" if self.delivery == "exactly-once" else ""
        return f"MirrorMaker 2 {self.tuning}{once}"

    def start(self, job: Job) -> Running:
        """Starts the driver."""
        jars = mirror_jars()
        path = job.directory / "mm2.properties"
        settings = properties(job, tuning=self.tuning, delivery=self.delivery)
        path.write_text("".join(f"{key} = {value}\n" for key, value in settings.items()))
        command: list[str | Path] = [
            find_java(),
            *shlex.split(_JVM),
            f"-Dreplicator.log={job.directory / 'mm2-warnings.log'}",
            f"-Dlog4j2.configurationFile={package_file('log4j2.xml')}",
            "-cp",
            jars.classpath,
            "org.apache.kafka.connect.mirror.MirrorMaker",
            path,
        ]
        return launch(command, directory=job.directory, label="mm2")


def _security(cluster: LocalCluster) -> dict[str, str]:
    """TLS as the cluster has it; nothing for plaintext."""
    authority = cluster.client_settings().get("ssl.ca.location")
    if authority is None:
        return {}
    return {
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": authority,
    }


def properties(job: Job, *, tuning: Tuning, delivery: Delivery) -> dict[str, str]:
    """The whole ``mm2.properties``; what is not named keeps its default."""
    flow = f"{job.alias}->{TARGET_ALIAS}"
    # As many as the replicator's topics have.
    replicas = str(min(3, len(job.target.bootstrap_servers)))
    settings = {
        "clusters": f"{job.alias}, {TARGET_ALIAS}",
        f"{job.alias}.bootstrap.servers": ",".join(job.source.bootstrap_servers),
        f"{TARGET_ALIAS}.bootstrap.servers": ",".join(job.target.bootstrap_servers),
        f"{flow}.enabled": "true",
        f"{flow}.topics": ",".join(job.topics),
        # Without heartbeats the driver starts no second herder for the way back.
        "emit.heartbeats.enabled": "false",
        "replication.factor": replicas,
        "offset-syncs.topic.replication.factor": "1",
        "checkpoints.topic.replication.factor": replicas,
        "heartbeats.topic.replication.factor": replicas,
        "offset.storage.replication.factor": replicas,
        "status.storage.replication.factor": replicas,
        "config.storage.replication.factor": replicas,
    }
    if tuning == "tuned":
        settings |= {
            "tasks.max": "4",
            f"{TARGET_ALIAS}.producer.batch.size": "327680",
            f"{TARGET_ALIAS}.producer.linger.ms": "100",
            f"{job.alias}.consumer.fetch.max.bytes": "52428800",
            f"{job.alias}.consumer.max.partition.fetch.bytes": "10485760",
            f"{job.alias}.consumer.max.poll.records": "2000",
        }
        if job.codec != "none":
            settings[f"{TARGET_ALIAS}.producer.compression.type"] = job.codec
    for alias, cluster in ((job.alias, job.source), (TARGET_ALIAS, job.target)):
        settings |= {f"{alias}.{key}": value for key, value in _security(cluster).items()}
    if delivery == "exactly-once":
        (port,) = free_ports(1)
        settings |= {
            f"{TARGET_ALIAS}.exactly.once.source.support": "enabled",
            f"{job.alias}.consumer.isolation.level": "read_committed",
            # Starting a task in this mode needs the workers' internal REST interface.
            "dedicated.mode.enable.internal.rest": "true",
            "listeners": f"http://127.0.0.1:{port}",
        }
    return settings
