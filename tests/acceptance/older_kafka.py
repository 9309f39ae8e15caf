"""One broker of an older Kafka, from its own Maven jars, with the ZooKeeper it still needs.

Stands in for a `LocalCluster` where tests of versions need one; plaintext, one broker.
"""

import shutil
import tempfile
from pathlib import Path
from typing import Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from replicator.testing import wait_until
from replicator.testing.cluster.brokers.jars import find_java, run_maven
from replicator.testing.cluster.topics import create_topic
from replicator.testing.kit.cache import cache_root
from replicator.testing.kit.child_processes import ChildProcess, start_child
from replicator.testing.kit.ports import free_ports

_POM = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>replicator</groupId><artifactId>older-kafka</artifactId><version>1</version>
  <packaging>pom</packaging>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>{version}</version>
    </dependency>
    <dependency>
      <groupId>org.slf4j</groupId><artifactId>slf4j-simple</artifactId><version>1.7.36</version>
    </dependency>
  </dependencies>
</project>
"""
_ZOOKEEPER = """\
dataDir={data}/zookeeper
clientPort={port}
clientPortAddress=127.0.0.1
admin.enableServer=false
"""
_BROKER = """\
broker.id=0
listeners=PLAINTEXT://127.0.0.1:{port}
zookeeper.connect=127.0.0.1:{zookeeper}
log.dirs={data}/logs
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
group.initial.rebalance.delay.ms=0
"""


class OlderKafka:
    """A running broker; a context manager that ends it and deletes its data."""

    def __init__(self, name: str, version: str) -> None:
        self.name = name
        self._version = version
        self._home = Path(tempfile.mkdtemp(prefix=f"kafka-{version}-"))
        self._children: list[ChildProcess] = []
        self._port, self._zookeeper = free_ports(2)

    def __enter__(self) -> Self:
        try:
            jars = _jars(self._version)
            self._run(jars, "org.apache.zookeeper.server.quorum.QuorumPeerMain",
                      _ZOOKEEPER.format(data=self._home, port=self._zookeeper))  # fmt: skip
            self._run(jars, "kafka.Kafka",
                      _BROKER.format(data=self._home, port=self._port, zookeeper=self._zookeeper))  # fmt: skip
            wait_until(self._answers, timeout_seconds=90, describe=self.log_tail)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for child in reversed(self._children):
            child.kill()
        shutil.rmtree(self._home, ignore_errors=True)

    def admin(self) -> AdminClient:
        """A client that is quiet about a broker that is not up yet."""
        return AdminClient({**self.client_settings(), "log_level": 2})

    def admin_settings(self) -> dict[str, str]:
        """Settings for librdkafka."""
        return self.client_settings()

    def client_settings(self, user: str | None = None) -> dict[str, str]:
        """Settings for librdkafka; there are no users."""
        assert user is None
        return {"bootstrap.servers": f"127.0.0.1:{self._port}"}

    def topology_entry(self) -> dict[str, object]:
        """What stands under ``spec.clusters.<alias>`` of a topology file."""
        return {"bootstrapServers": [f"127.0.0.1:{self._port}"]}

    def create_topic(self, name: str, *, partitions: int = 1) -> None:
        """Creates a topic and returns when every partition has a leader."""
        create_topic(self.admin(), name=name, partitions=partitions, config={})

    def log_tail(self) -> str:
        """The last lines of both programs."""
        logs = sorted(self._home.glob("*.log"))
        return "\n".join(line for log in logs for line in log.read_text().splitlines()[-20:])

    def _run(self, jars: Path, main: str, settings: str) -> None:
        file = self._home / f"{main}.properties"
        file.write_text(settings)
        command = [
            find_java(),
            "-Xmx300m",
            "-XX:TieredStopAtLevel=1",
            "-cp",
            f"{jars}/*",
            main,
            file,
        ]
        self._children.append(start_child(command, output=self._home / f"{main}.log"))

    def _answers(self) -> bool:
        try:
            return bool(self.admin().list_topics(timeout=2).brokers)
        except KafkaException:
            return False


def _jars(version: str) -> Path:
    """Fetched once; a directory that is there is complete."""
    directory = cache_root() / f"older-kafka-{version}"
    if not directory.is_dir():
        directory.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=directory.parent) as scratch:
            pom = Path(scratch) / "pom.xml"
            pom.write_text(_POM.format(version=version))
            fetched = Path(scratch) / "jars"
            run_maven(
                pom,
                "dependency:copy-dependencies",
                f"-DoutputDirectory={fetched}",
                "-DincludeScope=runtime",
            )
            fetched.rename(directory)
    return directory
