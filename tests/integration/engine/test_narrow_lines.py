"""A line to the target that carries little: a lane sends no more at once than gets through in time."""

import os

import pytest
from lane_lab import LaneLab

from replicator.testing import LineQuality, LocalCluster, WanLine, start_all
from replicator.testing.wan.wan_line import unavailable

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(unavailable()), reason=unavailable() or "there are long lines"),
]

BATCHES = {"engine": "batches", "provenance": "path"}
NARROW = LineQuality(round_trip_seconds=0.1, bytes_per_second=200_000.0)
WIDE = LineQuality(round_trip_seconds=0.0)
RECORDS, SIZE = 1_800, 10_000
"""One and a half minutes of the line: longer than a broker may owe an answer, and than a transaction may be open."""


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


@pytest.mark.timeout(300)
@pytest.mark.parametrize("delivery", ["exactly-once", "at-least-once"])
@pytest.mark.parametrize("engine", [{}, BATCHES], ids=["records", "batches"])
def test_a_backlog_gets_through_a_narrow_line_without_being_sent_twice(
    pair, line, unique, engine, delivery
):
    lab = LaneLab(*pair, name=unique)
    topic = lab.topic(partitions=4)
    values = [b"%d " % number + os.urandom(SIZE) for number in range(RECORDS)]
    lab.produce(
        topic,
        *({"value": value, "partition": at % 4} for at, value in enumerate(values)),
        **{"batch.size": 4 * SIZE},
    )
    lab.prepare()
    line.change(NARROW)
    try:
        lane = lab.lane(topic, delivery=delivery, **engine)
        lab.caught_up(lane, timeout_seconds=180.0)
        problem = lane.stats.target_problem
    finally:
        line.change(WIDE)
        lab.close()
    found = lab.on_target(topic)
    assert [seen.value for seen in found] == [
        values[at] for n in range(4) for at in range(n, RECORDS, 4)
    ]
    assert lane.stats.aborts == lane.stats.unknown_outcomes == 0, [each.fields for each in lane.log]
    assert problem == ""
    warnings = [said.fields for said in lane.log if said.level == "warning"]
    assert warnings == [], warnings


@pytest.mark.timeout(300)
@pytest.mark.parametrize("engine", [{}, BATCHES], ids=["records", "batches"])
def test_a_backlog_is_read_over_a_narrow_line_and_its_source_is_not_called_damaged(
    pair, line, unique, engine
):
    near, far = pair
    lab = LaneLab(far, near, name=unique)
    topic = lab.topic(partitions=16)
    values = [b"%d " % number + os.urandom(SIZE) for number in range(RECORDS)]
    lab.produce(
        topic,
        *({"value": value, "partition": at % 16} for at, value in enumerate(values)),
        **{"batch.size": 4 * SIZE},
    )
    lab.prepare()
    line.change(NARROW)
    try:
        lane = lab.lane(topic, **engine)
        lab.caught_up(lane, timeout_seconds=200.0)
    finally:
        line.change(WIDE)
        lab.close()
    found = lab.on_target(topic)
    assert [seen.value for seen in found] == [
        values[at] for n in range(16) for at in range(n, RECORDS, 16)
    ]
    assert "SOURCE_DAMAGED" not in {said.fields.get("problem") for said in lane.log}
