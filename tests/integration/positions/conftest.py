"""Two clusters with a real worker between them, and the naive truth about every position."""

import subprocess
import sys

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import OffsetSpec
from producing import produce
from topology_files import write_topology
from whole_topic import read_topic

from replicator.control.status.collect import collect_status
from replicator.control.status.translator import open_translator
from replicator.offsets.index.paths import translation_paths
from replicator.topology.file.load import require_plan


class Pair:
    """East and west, one topic, one topology file; the worker runs only inside ``replicating``."""

    def __init__(self, directory, east, west, name, topic):
        self.east, self.west, self.name, self.topic = east, west, name, topic
        self.directory = directory
        self.file = directory / "topology.yaml"

    def topology(self, **link):
        link = {
            "name": "orders", "shape": "active-passive", "active": "east", "passive": "west",
            "topics": {"include": [self.topic]}, "engine": "records", **link,
        }  # fmt: skip
        if link["shape"] == "active-active":
            link = {key: link[key] for key in link if key not in {"active", "passive"}}
            link["clusters"] = ["east", "west"]
        write_topology(
            self.file, self.name, (self.east, self.west), [link],
            defaults={"discoveryInterval": "1s"},
        )  # fmt: skip
        return require_plan(self.file)

    def write(self, cluster, count, *, partition=0, topic=None, value="v"):
        values = (f"{value}-{number}".encode() for number in range(count))
        produce(cluster, topic or self.topic, values, partition=partition)

    def write_transactions(self, cluster, counts, *, partition=0, topic=None):
        """One transaction per count; negative ones are aborted."""
        producer = Producer(
            {**cluster.client_settings(), "transactional.id": f"{self.name}-writer"}
        )
        producer.init_transactions(20)
        for count in counts:
            producer.begin_transaction()
            for number in range(abs(count)):
                producer.produce(topic or self.topic, f"t-{number}".encode(), partition=partition)
            producer.flush(20)
            if count > 0:
                producer.commit_transaction(20)
            else:
                producer.abort_transaction(20)

    def start(self):
        with (self.directory / "worker.log").open("ab") as log:
            return subprocess.Popen(
                [
                    sys.executable, "-m", "replicator", "run", "-f", self.file,
                    "--processes", "1", "--http", "127.0.0.1:0", "--log-format", "json",
                ],
                stdout=log, stderr=log,
            )  # fmt: skip

    def log_of(self, cluster, topic=None, partition=0):
        """Every committed record: offset and last hop, None where it has none; and the log's end."""
        found = []
        for message in read_topic(cluster, topic or self.topic, [partition]):
            hops = dict(message.headers() or []).get("replicator-hops")
            last = None if hops is None else hops.decode().split(" ")[-1]
            found.append((message.offset(), last))
        return found, self.end_of(cluster, topic, partition)

    def end_of(self, cluster, topic=None, partition=0):
        """Next offset of a partition, markers included."""
        place = TopicPartition(topic or self.topic, partition)
        return cluster.admin().list_offsets({place: OffsetSpec.latest()})[place].result(20).offset

    def committed(self, cluster, group, topic=None, partition=0):
        consumer = Consumer({**cluster.client_settings(), "group.id": group})
        part = consumer.committed([TopicPartition(topic or self.topic, partition)], timeout=20)[0]
        consumer.close()
        return part.offset, part.metadata


@pytest.fixture
def pair(tmp_path, east, west, unique):
    return Pair(tmp_path, east, west, unique, f"{unique}.orders")


@pytest.fixture
def replicating(pair):
    """Runs a worker until every flow has caught up, then stops it; returns when it is gone."""
    started = []

    def until_caught_up(*, expect=None, expect_position=None, then=lambda: None):
        worker = pair.start()
        started.append(worker)
        _wait(pair, expect or {})
        _wait_for_positions(pair, expect_position or {})
        then()
        worker.terminate()
        assert worker.wait(40) == 0

    yield until_caught_up
    for worker in started:
        if worker.poll() is None:
            worker.kill()
            worker.wait(10)


def _wait(pair, expect):
    """``expect``: for each (cluster, topic, partition) how many copies must stand there."""
    from replicator.testing import wait_until

    for (cluster, topic, partition), count in expect.items():

        def there(cluster=cluster, topic=topic, partition=partition, count=count):
            if topic not in cluster.admin().list_topics(timeout=20).topics:
                return False
            found, _ = pair.log_of(cluster, topic, partition)
            return sum(last is not None for _, last in found) >= count

        wait_until(there, timeout_seconds=90, interval_seconds=0.5, describe=f"{count} copies")


def _wait_for_positions(pair, expect):
    """``expect``: for each (source topic, partition) up to where it must be checkpointed."""
    from replicator.testing import wait_until

    def positions():
        flows = collect_status(require_plan(pair.file))["flows"]
        return {
            (topic["source"], part["partition"]): part["position"] or 0
            for flow in flows for topic in flow["topics"] for part in topic["partitions"]
        }  # fmt: skip

    wait_until(
        lambda: all(positions().get(key, 0) >= end for key, end in expect.items()),
        timeout_seconds=120, interval_seconds=0.5,
        describe=lambda: f"positions {expect}, but there are {positions()}",
    )  # fmt: skip


@pytest.fixture
def translate():
    """Translates many positions with one translator."""
    opened = []

    def positions(plan, here, there, topic, *offsets, partition=0):
        translator = open_translator(plan, client_id="test-offsets")
        opened.append(translator)
        way = translation_paths(plan, here, there, topic, partition)[0]
        translator.refresh([way])
        return [translator.cross(way, offset) for offset in offsets]

    yield positions
    for translator in opened:
        translator.close()
