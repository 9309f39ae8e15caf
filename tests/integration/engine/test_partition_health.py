"""What keeps one partition from moving is named within ten seconds, and stops no other partition."""

import time
from dataclasses import replace

import pytest
from lane_lab import LaneLab

from replicator.identifiers import quarantine_topic
from replicator.testing import LocalCluster, SecuritySetup, start_all
from replicator.topology.plan import SecretRef, SecurityPlan

USERS = {"admin": "admin-pass", "replicator": "pass-of-tests"}
NAMED_SECONDS = 10.0


class SecuredLab(LaneLab):
    """A lab whose lanes log in as a user with rights of its own, on both clusters."""

    def plan(self, cluster, alias):
        security = SecurityPlan(
            protocol="SASL_PLAINTEXT", mechanism="PLAIN",
            username=SecretRef(literal="replicator"),
            password=SecretRef(literal=USERS["replicator"]),
        )  # fmt: skip
        return replace(super().plan(cluster, alias), security=security)


@pytest.fixture(scope="module")
def secured():
    pair = tuple(
        LocalCluster(name, security=SecuritySetup.sasl("PLAIN", users=USERS, authorizer=True))
        for name in ("east", "west")
    )
    start_all(pair)
    yield pair
    for cluster in pair:
        cluster.stop()


@pytest.fixture
def guarded(secured, unique):
    for cluster in secured:
        cluster.revoke_all("replicator")
        cluster.allow("replicator", ["ALL"], resource="cluster", name="kafka-cluster")
        for resource in ("topic", "group", "transactional-id"):
            cluster.allow("replicator", ["ALL"], resource=resource)
    lab = SecuredLab(*secured, name=unique)
    yield lab
    lab.close()


def give_back(cluster) -> None:
    """Ends every denial."""
    cluster.revoke_all("replicator")
    cluster.allow("replicator", ["ALL"], resource="cluster", name="kafka-cluster")
    for resource in ("topic", "group", "transactional-id"):
        cluster.allow("replicator", ["ALL"], resource=resource)


def failure(lane, topic, partition=0):
    found = lane.partition(topic, partition)
    return None if found is None else found.failure


@pytest.mark.parametrize("right", ["READ", "DESCRIBE"])
def test_a_topic_that_may_not_be_read_any_more_is_named_and_the_others_go_on(guarded, right):
    lab = guarded
    topic, other = lab.topic(), lab.topic()
    lane = lab.lane(topic, other)
    lab.numbered(topic, range(10))
    lab.caught_up(lane)

    lab.source.deny("replicator", [right], name=topic)
    denied_at = time.monotonic()
    lab.numbered(topic, range(10, 20))
    lab.numbered(other, range(10))
    if right == "DESCRIBE":  # a reader that knows the leader may go on; a new one may not
        lane.update(work=lab.work(other))
        lane.update(work=(*lab.work(topic), *lab.work(other)))
    found = lab.until(lambda: failure(lane, topic), "the failure", lane)
    assert time.monotonic() - denied_at < NAMED_SECONDS
    assert (found.code, found.side) == ("NOT_AUTHORIZED", "source")
    assert topic in found.detail
    assert "ACL" in found.remedy
    assert lane.partition(topic).state == "failed"
    lab.caught_up(lane, other)
    assert not failure(lane, other)
    assert any(line.event == "partition does not move" for line in lane.log)

    give_back(lab.source)
    lab.caught_up(lane, topic)
    lab.until(lambda: failure(lane, topic) is None, "the failure to end", lane)
    assert lab.values(topic) == [b"%d" % n for n in range(20)]


@pytest.mark.parametrize("delivery", ["exactly-once", "at-least-once"])
def test_a_topic_that_may_not_be_written_is_set_aside_and_the_others_go_on(guarded, delivery):
    lab = guarded
    topic, other = lab.topic(), lab.topic()
    lane = lab.lane(topic, other, delivery=delivery)
    lab.numbered(topic, range(10))
    lab.caught_up(lane)

    lab.target.deny("replicator", ["WRITE"], name=topic)
    denied_at = time.monotonic()
    lab.numbered(topic, range(10, 20))
    found = lab.until(lambda: failure(lane, topic), "the failure", lane)
    assert time.monotonic() - denied_at < NAMED_SECONDS
    assert (found.code, found.side) == ("NOT_AUTHORIZED", "target")
    assert topic in found.detail
    assert "ACL" in found.remedy
    lab.numbered(other, range(10))
    lab.caught_up(lane, other)
    assert time.monotonic() - denied_at < 2 * NAMED_SECONDS
    if delivery == "exactly-once":
        assert lane.stats.aborts == 1, "the shared transaction is aborted once"
    assert failure(lane, topic).since_ms == found.since_ms

    give_back(lab.target)
    lab.caught_up(lane, topic)
    lab.until(lambda: failure(lane, topic) is None, "the failure to end", lane)
    assert lab.values(topic) == [b"%d" % n for n in range(20)]
    assert lab.values(other) == [b"%d" % n for n in range(10)]


def test_a_quarantine_topic_that_may_not_be_written_is_named_and_the_others_go_on(guarded):
    lab = guarded
    topic, other = lab.topic(target={"max.message.bytes": "3000"}), lab.topic()
    lane = lab.lane(topic, other)
    lab.numbered(topic, range(10))
    lab.caught_up(lane)

    quarantine = quarantine_topic(lab.name, "east")
    lab.target.deny("replicator", ["WRITE"], name=quarantine)
    lab.produce(topic, {"value": b"x" * 4000})
    lab.numbered(topic, range(10, 20))
    denied_at = time.monotonic()
    found = lab.until(lambda: failure(lane, topic), "the failure", lane)
    assert time.monotonic() - denied_at < NAMED_SECONDS
    assert (found.code, found.side) == ("NOT_AUTHORIZED", "target")
    assert quarantine in found.detail
    assert "ACL" in found.remedy
    lab.numbered(other, range(10))
    lab.caught_up(lane, other)
    assert not failure(lane, other)

    give_back(lab.target)
    lab.caught_up(lane, topic)
    lab.until(lambda: failure(lane, topic) is None, "the failure to end", lane)
    assert lab.values(topic) == [b"%d" % n for n in range(20)]
    assert len(lab.quarantined()) == 1
