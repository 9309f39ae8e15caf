"""East to west under prefixed names, on to north under the same names; groups on both ways."""

import json
from pathlib import Path
from typing import Any

from java_tools import compile_java, console_consumer, run_java
from producing import produce
from whole_topic import read_topic
from worker_lab import WorkerLab

from replicator.kafka.logs.compacted_read import read_compacted
from replicator.mm2.topics.formats import Checkpoint, decode_checkpoint, decode_offset_sync
from replicator.testing import LocalCluster, commit_positions
from replicator.topology.plan import ClusterPlan

FORMATTERS = "org.apache.kafka.connect.mirror.formatters"
IDENTITY = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
GROUP = "billing"
PARTITIONS = 2
RECORDS = 150


class Chain:
    """One topology, one worker, and Kafka's own clients to ask."""

    def __init__(
        self, directory: Path, east: LocalCluster, west: LocalCluster, north: LocalCluster
    ) -> None:
        self.east, self.west, self.north = east, west, north
        self.directory = directory
        self.worker = WorkerLab(directory, "mm2")
        self._classes: Path | None = None

    def start(self) -> None:
        """Records and positions first, then a worker; returns when everything is on north."""
        for cluster in (self.east, self.west, self.north):
            self.worker.cluster(cluster)
        policy: dict[str, Any] = {
            "mm2Compatibility": True,
            "groups": {"include": ["*"]},
            "lanes": 1,
        }
        self.worker.link(
            "first", "east", "west", ["*"],
            naming="prefix", sync={"groups": {"interval": "1s"}}, **policy,
        )  # fmt: skip
        # Checkpoints do not depend on whether positions are carried over.
        self.worker.link(
            "second", "west", "north", ["*"],
            naming="identity", sync={"groups": {"enabled": False, "interval": "1s"}}, **policy,
        )  # fmt: skip
        self.east.create_topic("orders", partitions=PARTITIONS)
        # MirrorMaker 2 was here before, and so was somebody who wrote into its topic.
        self.east.create_topic("heartbeats", partitions=1, config={"cleanup.policy": "compact"})
        produce(self.east, "heartbeats", [{"key": b"sensor-1", "value": b"{}"}])
        self.write(RECORDS)
        commit_positions(
            self.east, GROUP, {("orders", 0): 100, ("orders", 1): RECORDS}, metadata='a "note"'
        )
        self.worker.start()
        self.arrived(RECORDS)

    def write(self, count: int) -> None:
        """So many more records in each partition."""
        for partition in range(PARTITIONS):
            values = (f"v-{number}".encode() for number in range(count))
            produce(self.east, "orders", values, partition=partition)

    def arrived(self, count: int) -> None:
        """Waits until so many records of each partition are on north and nothing is behind."""

        def there() -> bool:
            positions = [
                partition["position"]
                for flow in ("east->west", "west->north")
                for topic in self.worker.flow(flow)["topics"]
                for partition in topic["partitions"]
            ]
            lags = [self.worker.flow(flow)["lagRecords"] for flow in ("east->west", "west->north")]
            enough = [position for position in positions if (position or 0) >= count]
            return len(enough) == len(positions) == 2 * PARTITIONS and lags == [0, 0]

        self.worker.until(there, f"{count} records in each partition on north")

    def translated(self, flow: str, topic: str, partition: int, offset: int) -> int:
        """Our own translation of a position, which has to be exact."""
        answer = self.worker.command(
            "offsets", "translate", "--flow", flow, "--topic", topic,
            "--partition", str(partition), "--offset", str(offset),
        )  # fmt: skip
        assert answer["grade"] == "exact", answer
        return answer["targetOffset"]

    def checkpoint(self, partition: int) -> Checkpoint | None:
        """What stands on west for the group, by our own reader: quicker to ask than a JVM."""
        stored = read_compacted(
            ClusterPlan("west", tuple(self.west.bootstrap_servers)),
            "east.checkpoints.internal",
            client_id="test-mm2",
        )
        found = (decode_checkpoint(key, value) for key, value in stored[0].items())
        return next(
            (one for one in found if (one.group, one.partition) == (GROUP, partition)), None
        )

    def syncs(self) -> dict[str, list[tuple[int, int]]]:
        """Offset syncs of the first flow by partition, all that were ever written, in order."""
        found: dict[str, list[tuple[int, int]]] = {}
        for record in read_topic(self.east, "mm2-offset-syncs.west.internal"):
            one = decode_offset_sync(record.key(), record.value())
            place = f"{one.topic}-{one.partition}"
            found.setdefault(place, []).append((one.upstream, one.downstream))
        return found

    def ask(
        self, cluster: LocalCluster, remote: str, *settings: str, group: str = GROUP
    ) -> dict[str, Any]:
        """What MirrorMaker 2's Java client says about a cluster."""
        if self._classes is None:
            source = Path(__file__).parent / "java" / "AskMirrorClient.java"
            self._classes = compile_java([source], self.directory / "classes")
        text = run_java(
            "AskMirrorClient",
            [",".join(cluster.bootstrap_servers), remote, group, *settings],
            classes=self._classes,
            log=self.directory / "client.log",
        )
        return json.loads(text)

    def printed(self, cluster: LocalCluster, topic: str, formatter: str, count: int) -> list[str]:
        """What the console consumer prints of a topic."""
        return console_consumer(
            ",".join(cluster.bootstrap_servers),
            topic,
            formatter=f"{FORMATTERS}.{formatter}",
            records=count,
            log=self.directory / "console.log",
        )
