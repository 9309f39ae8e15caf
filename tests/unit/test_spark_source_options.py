"""What users of Spark's own Kafka source write is read as they mean it."""

import json
from dataclasses import replace

import pytest

from replicator.errors import InputError
from replicator.spark.base.ranges import Range
from replicator.spark.source.options import read_options
from replicator.spark.source.planning import tasks_of
from replicator.spark.source.positions import Times

BASE = {"kafka.bootstrap.servers": "broker:9092", "subscribe": "orders"}


def options(**given):
    return read_options({**BASE, **given})


def refusal(**given):
    with pytest.raises(InputError) as raised:
        read_options({**BASE, **{name.replace("__", "."): value for name, value in given.items()}})
    return raised.value.paragraph()


def test_positions_may_be_a_word_offsets_times_or_one_time():
    assert options().start is None  # the kind of query decides
    assert options(startingOffsets="earliest").start == "earliest"
    assert options(startingOffsets="LATEST").start == "latest"
    named = options(startingOffsets='{"orders": {"0": 5}}', endingOffsets='{"orders": {"0": -1}}')
    assert named.start == {("orders", 0): 5}
    assert named.end == {("orders", 0): -1}
    by_time = json.dumps({"orders": {"0": 1000, "1": 2000}})
    timed = options(startingOffsetsByTimestamp=by_time, endingTimestamp="0")
    assert timed.start == Times({("orders", 0): 1000, ("orders", 1): 2000})
    assert timed.end == 0


def test_everything_wrong_with_positions_is_reported_at_once():
    said = refusal(
        startingOffsets="earliest", startingTimestamp="5", endingOffsets="earliest",
        includeHeaders="yes", minPartitions="0", startingOffsetsByTimestampStrategy="guess",
    )  # fmt: skip
    for part in (
        "only one of startingOffsets, startingTimestamp", "endingOffsets cannot be earliest",
        "includeHeaders is true or false", "minPartitions is a positive number",
        "startingOffsetsByTimestampStrategy is error or latest",
    ):  # fmt: skip
        assert part in said


@pytest.mark.parametrize(
    "wrong", ['{"orders": {"0": -3}}', '{"orders": 3}', "now", '{"orders": {"a": 1}}']
)
def test_offsets_that_mean_nothing_are_refused(wrong):
    assert "startingOffsets" in refusal(startingOffsets=wrong)


def test_client_settings_are_translated_from_the_java_clients_names():
    found = options(**{"kafka.fetch.max.wait.ms": "50", "kafka.max.partition.fetch.bytes": "1000"})
    assert dict(found.cluster.kafka) == {
        "fetch.wait.max.ms": "50", "max.partition.fetch.bytes": "1000",
    }  # fmt: skip
    assert options(**{"kafka.security.protocol": "PLAINTEXT"}).cluster.kafka == ()


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("kafka__sasl__jaas__config", "topology file"),
        ("kafka__security__protocol", "topology file"),
        ("kafka__group__id", "nothing is committed"),
        ("kafka__key__deserializer", "does not use it"),
        ("kafka__session__timeout__ms", "failure detection"),
        ("kafka__nonsense", "no such setting"),
        ("maxTriggerDelay", "longer interval"),
        ("groupIdPrefix", "no consumer group"),
        ("startAt", "unknown option"),
    ],
)
def test_an_option_without_a_counterpart_is_refused_by_its_name(name, reason):
    said = refusal(**{name: "SASL_SSL secret"})
    assert name.replace("__", ".").lower() in said.lower()
    assert reason in said
    assert "secret" not in said.removesuffix("secrets stay references there").replace("secrets", "")


def test_tasks_keep_the_limits_that_were_asked_for():
    ranges = [Range("orders", 0, 0, 100), Range("orders", 1, 0, 10)]
    plain = options()

    def sizes(chosen):
        return sorted(sum(one.size for one in task) for task in tasks_of(ranges, chosen))

    assert sizes(plain) == [110]  # small ranges share a task
    assert max(sizes(replace(plain, most_per_task=30))) == 30
    assert len(sizes(replace(plain, least_tasks=8))) >= 8
    assert sum(sizes(replace(plain, most_per_task=30, least_tasks=2))) == 110
    assert sizes(replace(plain, least_tasks=500)) == [1] * 110
