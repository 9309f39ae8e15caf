"""A flow whose copies are made by hand, so that a test can plant exactly what is to be found."""

import time
from pathlib import Path
from typing import Any

from producing import produce
from topology_files import active_passive, write_topology

from replicator.cli.main import run_command
from replicator.control.lanes.layout import lane_in
from replicator.control.store.read import read_control
from replicator.formats.checkpoint import Checkpoint
from replicator.identifiers import HOPS_HEADER, checkpoints_topic
from replicator.kafka.logs.log_writer import LogWriter
from replicator.offsets.index.index import LaneIndex
from replicator.topology.file.load import require_plan

NOW_MS = round(time.time() * 1000) - 3_600_000
"""Young enough that retention leaves the records of a test alone."""

Record = tuple[bytes | None, bytes | None, int, list[tuple[str, bytes | None]] | None]
"""Key, value, timestamp in milliseconds, headers."""


def plain(count: int, *, keys: int | None = None) -> list[Record]:
    """Records that differ; ``keys`` of them, over and over, when given."""
    return [
        (b"k%d" % (number % (keys or count)), b"v%d" % number, NOW_MS + number, None)
        for number in range(count)
    ]


def write(cluster, topic, records, partition=0) -> None:
    """Produces records; their offsets follow those that are there."""
    fields = ("key", "value", "timestamp", "headers")
    named = (dict(zip(fields, each, strict=True)) for each in records)
    produce(cluster, topic, named, partition=partition, settings={"linger.ms": 20})


class CopiedPair:
    """``east->west`` over one topic, applied, with copies and checkpoints as a test writes them."""

    def __init__(self, folder: Path, name: str, east, west, **policy: Any) -> None:
        self.name = name
        self.topic = f"t.{name}"
        self.east, self.west = east, west
        self.path_only = policy.get("provenance") == "path"
        self._folder = folder
        self.write_file(**policy)

    def write_file(self, **policy: Any) -> None:
        """The topology with this policy from now on; copies made by hand are those of records."""
        link = active_passive([self.topic], name="l", engine="records") | policy
        clusters = (self.east, self.west)
        self.file = write_topology(self._folder / "topology.yaml", self.name, clusters, [link])
        self.plan = require_plan(self.file)

    def apply(self, *, partitions: int = 1, config: dict[str, str] | None = None) -> None:
        """Creates the topic and everything the flow needs."""
        self.east.create_topic(self.topic, partitions=partitions, config=config or {})
        assert run_command(["apply", "-f", str(self.file), "--yes"]) == 0

    def copy_of(self, record: Record, offset: int, partition: int = 0) -> Record:
        """What the flow's engine would write."""
        key, value, at, headers = record
        place = "" if self.path_only else f"/{self.topic}/{partition}/{offset}"
        return key, value, at, [*(headers or ()), (HOPS_HEADER, f"east{place}".encode())]

    def copies_of(self, records: list[Record], partition: int = 0) -> list[Record]:
        """The copies of a partition that begins at offset 0 and has no gaps."""
        return [self.copy_of(record, at, partition) for at, record in enumerate(records)]

    def checkpoint(self, *, copied_to: int, partition: int = 0, pairs=()) -> None:
        """What the lane would have stored: how far it copied, and pairs of the offset map."""
        pair = self.plan.pairs[0]
        control = read_control(self.name, pair.target, client_id="test")
        lane = lane_in(control.layout("east").block("l"), self.topic, partition)
        stored = Checkpoint(self.topic, partition, offset=copied_to, at_ms=NOW_MS)
        index = LaneIndex({})
        entries = [(stored.key(), stored.value())]
        for number, (source, target) in enumerate(pairs):
            entries += index.note(
                self.topic, partition, source, target, now=10.0 * number, at_ms=NOW_MS
            )
        with LogWriter(
            pair.target, checkpoints_topic(self.name, "east"), client_id="test"
        ) as writer:
            writer.write(entries, partition=lane)
