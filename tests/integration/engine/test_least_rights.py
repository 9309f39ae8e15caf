"""The rights that docs/deploying.md grants are enough: a worker whose user has just these copies everything."""

import itertools
import re
import shlex
from pathlib import Path

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, TopicPartition
from confluent_kafka.admin import NewPartitions
from lane_lab import LaneLab

from replicator.testing import LocalCluster, SecuritySetup, commit_positions, start_all

PAGE = Path(__file__).resolve().parents[3] / "docs" / "deploying.md"
USERS = {"admin": "admin-pass-of-tests", "replicator": "s3cret-of-tests"}
FLOW = "east->west"
TOPIC = "orders.eu"
RECORDS = 50


def granted(cluster: str):
    """Rights that the page grants on a cluster: operations, resource, name, whether it is a prefix."""
    for line in re.findall(r"^\$ kafka-acls\.sh (.*)$", PAGE.read_text(), re.MULTILINE):
        if f"kafka.{cluster}." not in line:
            continue
        words = shlex.split(line)
        pairs = list(itertools.pairwise(words))
        operations = [
            re.sub(r"(?<=[a-z])(?=[A-Z])", "_", value).upper()
            for option, value in pairs if option == "--operation"
        ]  # fmt: skip
        ((resource, name),) = (
            (option.removeprefix("--"), value) for option, value in pairs
            if option in {"--topic", "--group", "--transactional-id"}
        )  # fmt: skip
        yield operations, resource, name, ("--resource-pattern-type", "prefixed") in pairs


def test_the_documented_rights_are_enough(worker):
    setup = SecuritySetup.sasl("SCRAM-SHA-256", users=USERS, authorizer=True)
    pair = east, west = LocalCluster("east", security=setup), LocalCluster("west", security=setup)
    start_all(pair)
    try:
        worker.name = "shop"
        lab = LaneLab(east, west, name=worker.name)
        east.create_topic(TOPIC, partitions=1, config={"retention.ms": "-1"})
        lab.numbered(TOPIC, range(RECORDS))
        commit_positions(east, "readers", {(TOPIC, 0): RECORDS})
        for cluster in pair:
            rules = list(granted(cluster.name))
            assert len(rules) >= 4
            for operations, resource, name, prefixed in rules:
                cluster.allow(
                    "replicator", operations, resource=resource, name=name, prefixed=prefixed
                )
            worker.cluster(cluster, user="replicator")
        worker.link("dr", "east", "west", ["orders.*"])
        worker.start()
        worker.until(
            lambda: topic_of(west) and len(lab.read(west, TOPIC)) == RECORDS, "the records"
        )
        worker.until(
            lambda: position(west, "readers") == RECORDS or worker.problems(FLOW),
            "the group's position",
        )
        assert worker.problems(FLOW) == {}
        east.admin().create_partitions([NewPartitions(TOPIC, 2)])[TOPIC].result(20)
        worker.until(lambda: len(topic_of(west)) == 2, "the new partition")
        told = worker.flow(FLOW)
        assert told["problems"] == []
    finally:
        for cluster in pair:
            cluster.stop()


def topic_of(cluster):
    found = cluster.admin().list_topics(timeout=20).topics.get(TOPIC)
    return found.partitions if found else {}


def position(cluster, group):
    asked = [ConsumerGroupTopicPartitions(group, [TopicPartition(TOPIC, 0)])]
    (answer,) = cluster.admin().list_consumer_group_offsets(asked).values()
    try:
        return answer.result(20).topic_partitions[0].offset
    except KafkaException:
        return None  # its coordinator is not there yet
