"""The documented rights on Kafka are enough for a flow with everything it does, and each is needed."""

import subprocess
import sys

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from documented_rights import (
    TOPICS,
    commands_of,
    covers,
    grant,
    left_without,
    needs_of,
    rights_of,
)
from lane_lab import LaneLab
from producing import produce

from replicator.testing import LocalCluster, SecuritySetup, commit_positions, start_all

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

RIGHTS = sorted(commands_of("deploying.md"))
FLOW = "east->west"
MM2 = needs_of("MirrorMaker 2")
MM2_TOPICS = {(right.cluster, right.name) for right in rights_of(MM2)}
USERS = (
    "all-rights",
    "no-groups",
    *(f"mm2-without-{number:02d}" for number in range(len(MM2))),
    *(f"without-{number:02d}" for number in range(len(RIGHTS))),
)
OF_THE_THING = {"GROUP_REFUSED", "CONFIG_DRIFT"}
"""A position or a setting that is refused is a problem of the group or the topic, with the refusal as its reason."""


class Flow:
    """One topology with its own user, topics and group, on clusters whose authorizers enforce rights."""

    def __init__(self, worker, user, east, west):
        self.east, self.west, self.worker, self.user = east, west, worker, user
        self.lab = LaneLab(east, west, name=worker.name)
        self.prefix = f"{user}.{TOPICS}"
        self.old, self.new = f"{self.prefix}old", f"{self.prefix}new"
        self.group = f"{user}-billing"
        for cluster in (east, west):
            worker.cluster(cluster, user=user)

    def grant(self, rights):
        clusters = {"east": self.east, "west": self.west}
        grant(clusters, self.user, rights, topology=self.worker.name, topics=self.prefix)

    def start(self, **policy):
        """Everything is due at once: a topic to create, and one to grow and to change."""
        self.east.create_topic(self.old, partitions=2, config={"retention.ms": "700000000"})
        self.west.create_topic(self.old, config={"retention.ms": "600000000"})
        self.east.create_topic(self.new)
        self.write(range(20))
        commit_positions(self.east, self.group, {(self.new, 0): 5})
        self.worker.link(
            "dr", "east", "west", [f"{self.prefix}*"],
            **{"groups": {"include": [self.group]}, "sync": {"groups": {"interval": "1s"}}, **policy},
        )  # fmt: skip
        self.worker.start()

    def write(self, numbers):
        values = (b"%d" % number for number in numbers)
        produce(self.east, self.new, values, partition=0, as_admin=True)

    def copied(self):
        if self.new not in self.west.admin().list_topics(timeout=20).topics:
            return []
        return [int(seen.value) for seen in self.lab.on_target(self.new)]

    def position(self):
        asked = self.west.admin().list_consumer_group_offsets(
            [ConsumerGroupTopicPartitions(self.group)]
        )
        found = asked[self.group].result(20).topic_partitions
        return max((each.offset for each in found), default=-1)

    def shape(self):
        """Partitions and retention of the topic that was there before."""
        admin = self.west.admin()
        resource = ConfigResource(ResourceType.TOPIC, self.old)
        settings = admin.describe_configs([resource])[resource].result(20)
        partitions = admin.list_topics(self.old, timeout=20).topics[self.old].partitions
        return len(partitions), settings["retention.ms"].value

    def settled(self, numbers, *, groups=True):
        self.worker.until(lambda: self.copied() == list(numbers), "every record, once")
        self.worker.until(lambda: self.shape() == (2, "700000000"), "the old topic as the source's")
        if groups:
            self.worker.until(lambda: self.position() == 5, "the group's position")
        self.worker.until(lambda: not self.worker.problems(FLOW), "no problem")

    def refusals(self):
        """What is told of missing rights, in words."""
        return [
            f"{each['subject']} {each['detail']} {each['remedy']}"
            for each in _problems(self.worker)
            if each["code"] == "NOT_AUTHORIZED"
            or (each["code"] in OF_THE_THING and "refuses it to our user" in each["detail"])
        ]  # fmt: skip


@pytest.fixture(scope="module")
def secured():
    users = {"admin": "admin-secret", **{user: f"{user}-secret" for user in USERS}}
    setup = SecuritySetup.sasl("PLAIN", users=users, authorizer=True)
    pair = (LocalCluster("east", security=setup), LocalCluster("west", security=setup))
    start_all(pair)
    yield pair
    for cluster in pair:
        cluster.stop()


@pytest.fixture
def flow(worker, secured):
    return lambda user: Flow(worker, user, *secured)


def test_a_flow_with_everything_it_does_works_under_the_documented_rights_alone(flow):
    flow = flow("all-rights")
    flow.grant(RIGHTS)
    worker = flow.worker
    flow.start()
    planned = worker.command("plan")
    assert planned["problems"] == []
    flow.settled(range(20))
    flow.write(range(20, 40))
    resource = ConfigResource(
        ResourceType.TOPIC, flow.new,
        incremental_configs=[
            ConfigEntry("retention.ms", "500000000", incremental_operation=AlterConfigOpType.SET)
        ],
    )  # fmt: skip
    flow.east.admin().incremental_alter_configs([resource])[resource].result(20)
    worker.drain()
    worker.start()
    flow.settled(range(40))

    checked = subprocess.run(
        [sys.executable, "-m", "replicator", "check", "--url", worker.url(), "--timeout", "60"],
        capture_output=True, text=True, check=False, timeout=90,
    )  # fmt: skip
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert worker.command("status")["flows"][0]["problems"] == []
    for command in ("topics", "groups", "gaps"):
        worker.command(command)
    worker.drain()


@pytest.mark.parametrize("number", range(len(RIGHTS)), ids=lambda number: str(RIGHTS[number]))
def test_each_documented_right_is_needed_and_a_missing_one_is_named(flow, number):
    missing = RIGHTS[number]
    flow = flow(f"without-{number:02d}")
    flow.grant(left_without(RIGHTS, [missing]))
    groups = missing.name == "*" or not any(right.name == "*" for right in RIGHTS if covers(right, missing))  # fmt: skip
    flow.start(**({} if groups else {"sync": {"groups": {"enabled": False}}}))
    theirs = missing.under(flow.worker.name, flow.prefix)
    named = "group" if theirs.name == "*" else theirs.name
    flow.worker.until(
        lambda: any(named in refusal for refusal in flow.refusals()), f"{missing} to be named"
    )

    flow.grant([missing])
    flow.settled(range(20), groups=groups)


def test_without_positions_of_groups_no_right_on_other_groups_is_needed(flow):
    flow = flow("no-groups")
    flow.grant(right for right in RIGHTS if (right.resource, right.name) != ("group", "*"))
    flow.start(sync={"groups": {"enabled": False}})
    flow.settled(range(20), groups=False)
    flow.worker.drain()


@pytest.fixture
def without_mm2_topics(secured):
    """Everybody calls these topics the same, so each test begins without them."""
    for cluster in secured:
        there = cluster.admin().list_topics(timeout=20).topics
        for alias, name in MM2_TOPICS:
            if alias == cluster.name and name in there:
                cluster.delete_topic(name)


@pytest.mark.parametrize("number", range(len(MM2)), ids=lambda number: str(MM2[number]))
def test_each_right_on_mirrormakers_topics_is_needed_and_a_missing_one_is_named(
    flow, without_mm2_topics, number
):
    (missing,) = MM2[number].rights
    flow = flow(f"mm2-without-{number:02d}")
    flow.grant(RIGHTS)
    flow.grant(left_without(rights_of(MM2), [missing]))
    flow.start(mm2Compatibility=True)
    flow.worker.until(
        lambda: any(missing.name in refusal for refusal in flow.refusals()),
        f"{missing} to be named",
    )

    flow.grant([missing])
    flow.settled(range(20))


def _problems(worker):
    return list(worker.flow(FLOW)["problems"])
