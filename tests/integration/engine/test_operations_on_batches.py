"""What operators ask and do, on a link that carries whole batches, beside a worker that runs it."""

import json

import pytest
from confluent_kafka import Consumer, TopicPartition
from producing import produce
from whole_topic import read_topic

from replicator.testing import commit_positions, wait_until

PARTITIONS = 2
RECORDS = 1_500


def fill(cluster, topic, numbers):
    small = {"linger.ms": 5, "batch.num.messages": 100}
    for partition in range(PARTITIONS):
        records = ({"key": b"%d" % number, "value": b"%d" % number} for number in numbers)
        produce(cluster, topic, records, partition=partition, settings=small)


def values(cluster, topic, partition):
    """Every committed record's offset by its value."""
    found = read_topic(cluster, topic, [partition])
    return {int(message.value()): message.offset() for message in found}


def committed(cluster, group, topic):
    """Position of a group in partition 0."""
    consumer = Consumer({**cluster.client_settings(), "group.id": group})
    (place,) = consumer.committed([TopicPartition(topic, 0)], timeout=20)
    consumer.close()
    return place.offset


@pytest.mark.slow
@pytest.mark.timeout(500)
def test_operators_get_the_answers_they_get_for_records(run, worker, east, west, unique):
    topic = f"{unique}.orders"
    copy = f"east.{topic}"
    east.create_topic(topic, partitions=PARTITIONS)
    worker.cluster(east)
    worker.cluster(west)
    worker.link(
        "orders", "east", "west", [topic], naming="prefix", engine="batches", mm2Compatibility=True
    )
    fill(east, topic, range(RECORDS))
    commit_positions(east, f"{unique}-billing", {(topic, 0): 700})
    worker.start()

    def positions():
        topics = worker.flow("east->west")["topics"]
        return [part["position"] for each in topics for part in each["partitions"]]

    wait_until(
        lambda: positions() == [RECORDS] * PARTITIONS,
        timeout_seconds=60, describe=lambda: f"everything copied: {worker.log_text()[-2000:]}",
    )  # fmt: skip
    fill(east, topic, range(RECORDS, RECORDS + 500))
    wait_until(
        lambda: positions() == [RECORDS + 500] * PARTITIONS,
        timeout_seconds=60, describe=lambda: f"everything copied: {worker.log_text()[-2000:]}",
    )  # fmt: skip
    source, target = values(east, topic, 0), values(west, copy, 0)
    assert list(target) == list(source)
    file = ("-f", worker.file, "-o", "json")
    place = ("--flow", "east->west", "--topic", topic, "--partition", 0)

    def asked(*arguments):
        code, text, errors = run(*arguments, *file)
        assert code == 0, errors
        return json.loads(text)

    wanted = (0, 1, 777, RECORDS - 1, RECORDS, RECORDS + 250, RECORDS + 499)
    found = {at: asked("offsets", "translate", *place, "--offset", source[at]) for at in wanted}
    assert {at: (each["targetOffset"], each["grade"]) for at, each in found.items()} == {
        at: (target[at], "exact") for at in wanted
    }
    back = {
        at: asked("offsets", "translate", *place, "--offset", target[at], "--reverse")
        for at in wanted
    }
    assert {at: (each["targetOffset"], each["grade"]) for at, each in back.items()} == {
        at: (source[at], "exact") for at in wanted
    }, back
    traces = [
        asked(
            "offsets", "trace", "--cluster", cluster, "--topic", name, "--partition", 0,
            "--offset", offset,
        )
        for cluster, name, offset in (("east", topic, source[777]), ("west", copy, target[777]))
    ]  # fmt: skip
    for trace in traces:
        assert [(each["cluster"], each["offset"], each["state"]) for each in trace["places"]] == [
            ("east", source[777], "origin"),
            ("west", target[777], "copy"),
        ], trace

    wait_until(
        lambda: committed(west, f"{unique}-billing", copy) == target[700],
        timeout_seconds=60, describe=lambda: f"the group at {target[700]}: {asked('groups')}",
    )  # fmt: skip
    assert asked("gaps")["gaps"] == []
    (shown,) = asked("topics")["topics"]
    assert (shown["engine"], shown["engineReason"]) == ("batches", "")
    # What is known of a group is told anew with each synchronisation.
    wait_until(
        lambda: [(f["engine"], f["problems"]) for f in asked("status")["flows"]] == [("batches", [])],
        timeout_seconds=60, describe=lambda: f"a flow without problems: {asked('status')['flows']}",
    )  # fmt: skip
    wait_until(
        lambda: worker.flow("east->west")["canary"] is not None,
        timeout_seconds=60, describe="a canary that came through",
    )  # fmt: skip
    wait_until(
        lambda: {"east.heartbeats", "east.checkpoints.internal"}
        <= set(west.admin().list_topics(timeout=20).topics),
        timeout_seconds=60, describe="MirrorMaker 2's topics",
    )  # fmt: skip

    asked("pause", "--flow", "east->west")
    wait_until(lambda: worker.flow("east->west")["state"] == "paused",
               timeout_seconds=60, describe="the pause")  # fmt: skip
    fill(east, topic, range(5_000, 5_100))
    asked("resume", "--flow", "east->west")
    wait_until(lambda: len(values(west, copy, 0)) == RECORDS + 600,
               timeout_seconds=60, describe="what was written meanwhile")  # fmt: skip
