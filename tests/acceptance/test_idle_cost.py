"""What a worker costs that has nothing to do. Needs a machine that does nothing else."""

import os
import sys
import time
from pathlib import Path

import pytest
from confluent_kafka.admin import NewTopic

from replicator.testing import wait_until

TOPICS, PARTITIONS = 200, 4
SETTLED_SECONDS, MEASURED_SECONDS = 60.0, 60.0
MOST_PERCENT = 3.0


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_200_idle_topics_cost_less_than_three_percent_of_a_core(clusters, scene):
    east, west = clusters("east", "west")
    names = {f"{scene.topic}.{number:03d}" for number in range(TOPICS)}
    scene.clusters(east, west)
    scene.link(
        "active-passive", active="east", passive="west", flows=["east->west"],
        topics={"include": [f"{scene.topic}.*"]},
    )  # fmt: skip
    made = east.admin().create_topics([NewTopic(name, PARTITIONS) for name in names])
    for each in made.values():
        each.result(60)
    worker = scene.worker()
    wait_until(
        lambda: names <= set(west.admin().list_topics(timeout=20).topics),
        timeout_seconds=120,
        describe="all copies to be made",
        interval_seconds=1.0,
    )
    time.sleep(SETTLED_SECONDS)  # what a start still has to do is not what idle topics cost
    before = cpu_seconds(worker.group_pids())
    time.sleep(MEASURED_SECONDS)  # CPU time is of a span, not of an event
    used = cpu_seconds(worker.group_pids()) - before
    assert {topic["source"] for topic in worker.status()["east->west"]["topics"]} == names
    assert 0 < 100 * used / MEASURED_SECONDS < MOST_PERCENT


def cpu_seconds(pids: set[int]) -> float:
    """User and system time of the processes until now."""
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")
