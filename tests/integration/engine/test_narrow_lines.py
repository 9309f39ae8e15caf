"""A line that carries little: a lane sends and asks for no more at once than gets through in time."""

import os
import time
from dataclasses import dataclass, field

import pytest
from batch_headers import batch_headers
from lane_lab import LaneLab

from replicator.dataplane.takeover import target_looks
from replicator.dataplane.takeover.target_looks import find_last_copies
from replicator.dataplane.takeover.target_loss import SeenTarget
from replicator.policy.capacity.line_settings import FAR_CODEC, OFFER_BBR
from replicator.testing import LineQuality, LocalCluster, WanLine, start_all
from replicator.testing.wan.wan_line import unavailable
from replicator.wire.probes.line import offers_bbr

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(unavailable()), reason=unavailable() or "there are long lines"),
]

BATCHES = {"engine": "batches", "provenance": "path"}
NARROW = LineQuality(round_trip_seconds=0.1, bytes_per_second=200_000.0)
LOSSY = LineQuality(round_trip_seconds=0.1, loss=0.01, bytes_per_second=8_000_000.0, seed=7)
"""One connection carries about as little there as on the narrow line; several carry more."""
WIDE = LineQuality(round_trip_seconds=0.0)
RECORDS, SIZE = 1_800, 10_000
"""One and a half minutes of the line: longer than a broker may owe an answer, and than a transaction may be open."""
LOSSY_SECONDS = 40.0
"""Whole test; the kernel's usual congestion control needs a minute and more for the bytes alone, BBR four seconds."""
LARGE_BATCH = 90 * SIZE
"""Sixteen of them at once take longer than a broker may owe an answer too, and no part of a batch can be asked for."""


@pytest.fixture(scope="module")
def line():
    with WanLine(WIDE) as line:
        yield line


@pytest.fixture(scope="module")
def pair(line):
    kernels = {"socket.receive.buffer.bytes": "-1", "socket.send.buffer.bytes": "-1"}
    made = LocalCluster("east"), LocalCluster("west", place=line.place, config=kernels)
    start_all(made)
    yield made
    for cluster in made:
        cluster.stop()


@dataclass
class Backlog:
    """Values of a topic in the order of its partitions, to be copied over the narrow line."""

    partitions: int
    batch_bytes: int = 4 * SIZE
    values: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.values = [b"%d " % number + os.urandom(SIZE) for number in range(RECORDS)]

    def produced(self, lab: LaneLab) -> str:
        """The topic with all of them."""
        topic = lab.topic(partitions=self.partitions)
        lab.produce(
            topic,
            *(
                {"value": value, "partition": at % self.partitions}
                for at, value in enumerate(self.values)
            ),
            # A broker that is late is fenced for a moment; a plain producer's batches then come in another order.
            **{"batch.size": self.batch_bytes, "linger.ms": 2000, "enable.idempotence": True},
        )
        return topic

    def in_order(self) -> list[int]:
        """Numbers of the records, partition by partition."""
        return [
            at
            for first in range(self.partitions)
            for at in range(RECORDS)[first :: self.partitions]
        ]


def copied(line, clusters, name, backlog, quality=NARROW, **settings):
    """The lane that has copied it over such a line; and what was said of its target then."""
    lab = LaneLab(*clusters, name=name)
    topic = backlog.produced(lab)
    lab.prepare()
    line.change(quality)
    try:
        lane = lab.lane(topic, **settings)
        lab.caught_up(lane, timeout_seconds=200.0)
        problem = lane.stats.target_problem
    finally:
        line.change(WIDE)
        lab.close()
    source = [seen.value for seen in lab.on_source(topic)]
    target = [seen.value for seen in lab.on_target(topic)]
    # Of the test's own producer; what follows is the product's.
    assert numbers(source) == backlog.in_order()
    assert numbers(target) == numbers(source)
    assert target == source
    return lane, problem


def numbers(values):
    return [int(value.split(b" ", 1)[0]) for value in values]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("delivery", ["exactly-once", "at-least-once"])
@pytest.mark.parametrize("engine", [{}, BATCHES], ids=["records", "batches"])
def test_a_backlog_gets_through_a_narrow_line_without_being_sent_twice(
    pair, line, unique, engine, delivery
):
    lane, problem = copied(line, pair, unique, Backlog(4), delivery=delivery, **engine)
    assert lane.stats.aborts == lane.stats.unknown_outcomes == 0, [each.fields for each in lane.log]
    assert problem == ""
    warnings = [said.fields for said in lane.log if said.level == "warning"]
    assert warnings == [], warnings


@pytest.mark.timeout(300)
@pytest.mark.parametrize("quality", [NARROW, LOSSY], ids=["narrow", "lossy"])
@pytest.mark.parametrize("engine", [{}, BATCHES], ids=["records", "batches"])
def test_a_backlog_is_read_over_such_a_line_and_its_source_is_not_called_damaged(
    pair, line, unique, engine, quality
):
    lane, _ = copied(line, pair[::-1], unique, Backlog(16), quality, **engine)
    assert "SOURCE_DAMAGED" not in {said.fields.get("problem") for said in lane.log}


def test_a_look_at_the_copies_on_a_target_lasts_as_long_as_they_come(
    pair, line, unique, monkeypatch
):
    """As after a change of its leader; half a megabyte, or two and a half seconds of the line, for each answer of a broker."""
    monkeypatch.setattr(target_looks, "LOOK_SECONDS", 8.0)
    lab = LaneLab(*pair, name=unique)
    topic = lab.topic()
    lab.produce(topic, *({"value": os.urandom(SIZE)} for _ in range(300)))
    try:
        lab.copied(topic)
        seen = SeenTarget("", 0, lab.end(topic, cluster=lab.target), 0)
        line.change(NARROW)
        began = time.monotonic()
        found = find_last_copies(
            lab.plan(lab.target, "west"), {(topic, 0): seen}, {(topic, 0): (topic, 0)},
            source_alias="east", client_id="lab",
        )  # fmt: skip
        assert found[topic, 0].source_offset == 299
        assert time.monotonic() - began > target_looks.LOOK_SECONDS
    finally:
        line.change(WIDE)
        lab.close()


@pytest.mark.timeout(300)
@pytest.mark.skipif(not offers_bbr(), reason=f"this host does not offer BBR: {OFFER_BBR}")
@pytest.mark.parametrize("engine", [{}, BATCHES], ids=["records", "batches"])
def test_loss_on_the_way_to_the_target_costs_little_where_the_host_offers_bbr(
    pair, line, unique, engine
):
    began = time.monotonic()
    copied(line, pair, unique, Backlog(16), LOSSY, **engine)
    assert time.monotonic() - began < LOSSY_SECONDS


@pytest.mark.timeout(300)
def test_records_cross_a_long_line_compressed_and_the_next_owner_reads_where_they_end(
    pair, line, unique
):
    lab = LaneLab(*pair, name=unique)
    topic = lab.topic()
    lab.prepare()
    line.change(LineQuality(round_trip_seconds=0.05))
    try:
        for start in (0, 500):
            lab.numbered(topic, range(start, start + 500))
            lane = lab.copied(topic)
            assert lane.stats.aborts == lane.stats.unknown_outcomes == 0
    finally:
        line.change(WIDE)
        lab.close()
    assert lab.values(topic) == [b"%d" % number for number in range(1000)]
    written = {header.codec for header in batch_headers(lab.plan(pair[1], "west"), topic)}
    assert written == {FAR_CODEC}


@pytest.mark.timeout(300)
def test_batches_that_take_longer_than_an_answer_may_take_are_waited_for(pair, line, unique):
    backlog = Backlog(16, batch_bytes=LARGE_BATCH)
    lane, _ = copied(line, pair[::-1], unique, backlog, **BATCHES)
    told = [said.fields for said in lane.log if said.level == "warning"]
    assert told == [], told
