"""Clusters that hold a client back by a quota: a lane goes on as fast as they let it, and says so."""

import os
import time

import pytest
from kafka.protocol.admin import AlterClientQuotasRequest
from lane_lab import LaneLab

from replicator.control.store.worker_record import lane_problems
from replicator.testing import LocalCluster, start_all
from replicator.topology.plan import ClusterPlan
from replicator.wire.connection.leader import any_broker

pytestmark = pytest.mark.slow

BATCHES = {"engine": "batches", "provenance": "path"}
ENGINES = pytest.mark.parametrize("engine", [{}, BATCHES], ids=["records", "batches"])
DELIVERIES = pytest.mark.parametrize("delivery", ["exactly-once", "at-least-once"])
RECORDS, SIZE = 140, 10_000
WRITTEN_PER_SECOND, READ_PER_SECOND = 25_000, 50_000
"""All at once are held back for 46 seconds: for longer than a broker may owe an answer."""


@pytest.fixture(scope="module")
def pair():
    """Clusters of its own: their quotas hold everybody back."""
    made = LocalCluster("east"), LocalCluster("west")
    start_all(made)
    yield made
    for cluster in made:
        cluster.stop()


@pytest.fixture
def lab(pair, unique):
    lab = LaneLab(*pair, name=unique)
    yield lab
    lab.close()


def limit(cluster, key, bytes_per_second):
    """The quota of every client that has none of its own."""
    entry = AlterClientQuotasRequest.EntryData
    anybody = entry.EntityData(entity_type="client-id", entity_name=None)
    quota = entry.OpData(key=key, value=float(bytes_per_second), remove=False)
    request = AlterClientQuotasRequest(
        entries=[entry(entity=[anybody], ops=[quota])], validate_only=False
    )
    deadline = time.monotonic() + 20
    plan = ClusterPlan(cluster.name, tuple(cluster.bootstrap_servers))
    with any_broker(plan, client_id="quotas", deadline=deadline) as broker:
        answer = broker.call(request, newest=1, deadline=deadline)
    assert [each.error_code for each in answer.entries] == [0], answer


def told(lane):
    """Subjects of what the lane says of quotas."""
    return {part.subject for part in lane_problems(lane.stats) if part.code == "QUOTA_EXCEEDED"}


@pytest.fixture
def backlog(lab):
    """A topic with more than the quota lets through in many seconds, all different."""
    topic = lab.topic()
    values = [b"%d " % number + os.urandom(SIZE) for number in range(RECORDS)]
    # A broker never gives out a batch that is larger than its quota for the whole window of ten seconds.
    lab.produce(topic, *({"value": value} for value in values), **{"batch.size": 4 * SIZE})
    return topic, values


@DELIVERIES
@ENGINES
def test_a_target_with_a_quota_is_written_to_as_fast_as_it_lets_one(lab, backlog, engine, delivery):
    topic, values = backlog
    lab.prepare()
    limit(lab.target, "producer_byte_rate", WRITTEN_PER_SECOND)
    try:
        lane = lab.lane(topic, delivery=delivery, **engine)
        lab.until(lambda: told(lane) == {"cluster:west"}, "the quota to be named", lane)
        lab.caught_up(lane)
    finally:
        limit(lab.target, "producer_byte_rate", 1e9)
    assert lab.values(topic) == values
    assert lane.stats.aborts == lane.stats.unknown_outcomes == 0, [each.fields for each in lane.log]
    assert lane.stats.throttle_wait_seconds > 0
    assert [line.fields for line in lane.log if line.level == "warning"] == []
    lab.until(lambda: not told(lane), "nothing to be held back any more", lane)


@ENGINES
def test_a_source_with_a_quota_is_read_as_fast_as_it_lets_one(lab, backlog, engine):
    topic, values = backlog
    lab.prepare()
    limit(lab.source, "consumer_byte_rate", READ_PER_SECOND)
    try:
        lane = lab.lane(topic, **engine)
        lab.until(lambda: told(lane) == {"cluster:east"}, "the quota to be named", lane)
        lab.caught_up(lane)
    finally:
        limit(lab.source, "consumer_byte_rate", 1e9)
    assert lab.values(topic) == values
    assert lane.stats.aborts == 0, [each.fields for each in lane.log]
    assert [line.fields for line in lane.log if line.level == "warning"] == []
