"""Every kind of difference planted into a hand-made copy, and found; clean pairs are clean."""

import json

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from copied_pair import NOW_MS, plain, write
from producing import produce

from replicator.batches.registry.producer_registry import register
from replicator.cli.main import run_command
from replicator.control.records.pair_records import OppositeTopologies
from replicator.formats.producer_registry import RegisteredProducer
from replicator.identifiers import control_topic
from replicator.kafka.logs.log_writer import LogWriter
from replicator.spark.verify.run import VerifyRequest, verify_flow
from replicator.wire.requests.raw_log import RawLog

KINDS = ("lost", "duplicated", "reordered", "changed", "foreign")


def verify(spark, pair, **wanted):
    return verify_flow(spark, pair.plan, VerifyRequest("east->west", **wanted))


def set_config(cluster, topic, settings):
    """Sets dynamic settings of a topic."""
    entries = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        for name, value in settings.items()
    ]
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
    for answer in cluster.admin().incremental_alter_configs([resource]).values():
        answer.result(20)


def found(result):
    return {name: result["total"][name] for name in KINDS if result["total"][name]}


def test_a_clean_pair_is_clean_and_what_came_later_is_no_difference(spark, pair, capsys):
    pair = pair()
    pair.apply(partitions=2)
    for partition in range(2):
        records = plain(300)
        write(pair.east, pair.topic, records, partition)
        write(pair.west, pair.topic, pair.copies_of(records, partition)[:250], partition)
        pair.checkpoint(copied_to=200, partition=partition)
    result = verify(spark, pair)
    assert result["clean"], result
    assert result["total"]["compared"] == 400
    assert [each["compared"] for each in result["topics"]] == [200, 200]
    assert result["total"]["sourceHash"] == result["total"]["targetHash"]
    capsys.readouterr()
    code = run_command(["verify", "-f", str(pair.file), "--flow", "east->west", "-o", "json"])
    assert code == 0
    printed = json.loads(capsys.readouterr().out)
    assert set(printed["topics"][0]) >= {"topic", "partition", "compared", *KINDS}


def test_each_kind_is_found_and_counted(spark, pair, tmp_path, capsys):
    pair = pair()
    pair.apply(partitions=5)
    records = plain(100)
    for partition in range(5):
        write(pair.east, pair.topic, records, partition)
        pair.checkpoint(copied_to=100, partition=partition)
    copies = {partition: pair.copies_of(records, partition) for partition in range(5)}
    del copies[0][40]
    copies[1].insert(60, copies[1][50])
    copies[2][10], copies[2][11] = copies[2][11], copies[2][10]
    key, value, at, headers = copies[3][99]
    copies[3][99] = (key, value[:-1] + b"X", at, headers)
    copies[4].insert(70, (b"somebody", b"else", NOW_MS, None))
    for partition, written in copies.items():
        write(pair.west, pair.topic, written, partition)
    folder = tmp_path / "report"
    result = verify(spark, pair, report=folder)
    assert not result["clean"]
    per_partition = [
        {name: each[name] for name in KINDS if each[name]} for each in result["topics"]
    ]
    assert per_partition == [
        {"lost": 1}, {"duplicated": 1}, {"reordered": 1}, {"changed": 1}, {"foreign": 1},
    ]  # fmt: skip
    rows = spark.read.parquet(str(folder / "records.parquet")).orderBy("partition").collect()
    assert [(row.partition, row.kinds) for row in rows] == list(enumerate(KINDS))
    assert bytes(rows[3].source.value) == b"v99"
    assert bytes(rows[3]["copy"].value) == b"v9X"
    assert rows[0]["copy"] is None
    assert rows[4].source is None
    page = (folder / "report.html").read_text()
    assert "The clusters differ" in page
    assert "<svg" in page
    assert "http" not in page.replace("http-equiv", "")
    capsys.readouterr()
    assert run_command(["verify", "-f", str(pair.file), "--flow", "east->west"]) == 4
    text = capsys.readouterr().out
    # The last line is made to be quoted as one: terminals wrap it.
    *lines, closing = text.splitlines()
    assert max(len(line) for line in lines) <= 80
    assert closing.startswith("verify east->west: ")
    text = " ".join(text.split())
    assert "The clusters differ: 1 lost, 1 duplicated, 1 reordered, 1 changed, 1 foreign." in text
    place = f"{pair.topic}/3 offset 99"
    assert f"changed (value): source {place}, target {place}" in text
    assert f"lost: source {pair.topic}/0 offset 40 " in text
    assert "Add --report DIR for a report page and all differing records." in text


@pytest.mark.parametrize(
    "change",
    [
        lambda k, v, at, headers: (b"other", v, at, headers),
        lambda k, v, at, headers: (None, v, at, headers),
        lambda k, v, at, headers: (k, v, at + 1, headers),
        lambda k, v, at, headers: (k, v, at, [("a", b""), *headers[1:]]),
        lambda k, v, at, headers: (k, v, at, [headers[1], headers[0], headers[2]]),
    ],
    ids=["key", "null key", "time", "header value", "header order"],
)
def test_a_change_of_any_field_changes_the_hash(change):
    from replicator.spark.compare.digests import content_digest, without_last_hop

    headers = [("a", None), ("b", b"1"), ("replicator-hops", b"east/t/0/1")]
    record = (b"k", b"v", 5, headers)

    def digest(key, value, at, given):
        return content_digest(key, value, without_last_hop(given)[0], at)

    assert digest(*record) == content_digest(b"k", b"v", headers[:2], 5)
    assert digest(*change(*record)) != digest(*record)


def test_filtered_returning_and_bare_records_are_not_lost(spark, pair):
    pair = pair(filters=[{"dropIf": {"keyPrefix": "drop-"}}])
    pair.apply()
    records = plain(20)
    records[3] = (b"drop-me", b"x", NOW_MS + 3, None)
    records[5] = (b"k", b"x", NOW_MS + 5, [("replicator-hops", f"west/{pair.topic}/0/1".encode())])
    write(pair.east, pair.topic, records)
    copies = pair.copies_of(records)
    copies[9] = records[9]  # copied without the header, which would have made it too large
    write(pair.west, pair.topic, [copy for at, copy in enumerate(copies) if at not in {3, 5}])
    pair.checkpoint(copied_to=20)
    result = verify(spark, pair)
    assert result["clean"], result
    assert result["total"]["excused"] == {"filtered": 1, "loop": 1}
    assert result["total"]["compared"] == 17


def delete_records(cluster, topic, partition, before):
    """As DeleteRecords and retention do: the log begins at ``before``."""
    for answer in (
        cluster.admin().delete_records([TopicPartition(topic, partition, before)]).values()
    ):
        answer.result(20)


@pytest.mark.parametrize("provenance", ["full", "path"])
def test_deleted_at_the_source_is_counted_and_lost_at_the_head_of_the_target_is_a_difference(
    spark, pair, capsys, provenance
):
    pair = pair(provenance=provenance)
    pair.apply(partitions=2)
    records = plain(100)
    for partition in range(2):
        write(pair.east, pair.topic, records, partition)
        write(pair.west, pair.topic, pair.copies_of(records, partition), partition)
        pair.checkpoint(copied_to=100, partition=partition, pairs=((0, 0), (30, 30), (50, 50)))
    delete_records(pair.east, pair.topic, 0, 30)
    # An hour old, and the target keeps records for a week: its retention did not delete these.
    delete_records(pair.west, pair.topic, 1, 40)
    result = verify(spark, pair)
    assert found(result) == {"lost": 40}, result
    assert [each["compared"] for each in result["topics"]] == [70, 60]
    if provenance == "full":
        assert result["total"]["outside"] == {"sourceRetention": 30}
    capsys.readouterr()
    assert run_command(["verify", "-f", str(pair.file), "--flow", "east->west"]) == 4
    text = " ".join(capsys.readouterr().out.split())
    assert "The clusters differ: 40 lost." in text
    assert f"lost: source {pair.topic}/1 offset 0 " in text
    if provenance == "full":
        assert "Not compared: 30 that the source's log no longer holds." in text


def test_copies_that_the_targets_retention_may_have_deleted_are_not_lost(spark, pair, capsys):
    pair = pair()
    pair.apply()
    day = 86_400_000
    # The first 30 are older than the week for which the target keeps records.
    records = [(b"k", b"%d" % n, NOW_MS - (8 * day if n < 30 else 0) + n, None) for n in range(100)]
    kept = {"retention.ms": str(30 * day)}
    set_config(pair.east, pair.topic, kept)
    write(pair.east, pair.topic, records)
    set_config(pair.west, pair.topic, kept)
    write(pair.west, pair.topic, pair.copies_of(records))
    pair.checkpoint(copied_to=90)
    delete_records(pair.west, pair.topic, 0, 50)
    set_config(pair.west, pair.topic, {"retention.ms": str(7 * day)})
    result = verify(spark, pair)
    assert found(result) == {"lost": 20}, result
    assert result["total"]["outside"] == {"lag": 10, "targetRetention": 30}


def test_hops_without_places_are_matched_by_content_in_the_offset_map(spark, pair):
    pair = pair(provenance="path")
    pair.apply(partitions=2)
    records = plain(100)
    for partition in range(2):
        write(pair.east, pair.topic, records, partition)
        copies = pair.copies_of(records, partition)
        if partition:
            copies[20], copies[21] = copies[21], copies[20]
            del copies[50]
            copies.append(copies[7])
        write(pair.west, pair.topic, copies, partition)
        pair.checkpoint(copied_to=100, partition=partition, pairs=((0, 0), (90, 90)))
    result = verify(spark, pair)
    assert result["topics"][0]["matched"] == "content"
    assert found({"total": result["topics"][0]}) == {}
    assert found({"total": result["topics"][1]}) == {"lost": 1, "duplicated": 1, "reordered": 1}


def test_copies_that_whole_batches_left_are_matched_though_the_file_has_records_now(spark, pair):
    pair = pair()
    pair.apply()
    register(pair.plan.cluster("west"), pair.name, RegisteredProducer(77, "east", "west", "l"))
    records = plain(100)
    write(pair.east, pair.topic, records)
    marked = pair.copies_of(records)
    write(pair.west, pair.topic, [*marked[:30], *records[30:50], *records[51:60], *marked[60:]])
    pair.checkpoint(copied_to=100, pairs=((0, 0), (90, 89)))
    result = verify(spark, pair)
    assert (result["topics"][0]["matched"], result["total"]["compared"]) == ("content", 99)
    assert found(result) == {"lost": 1}


def test_what_another_topology_brought_to_the_source_in_whole_batches_is_not_lost(spark, pair):
    pair, other = pair(), "the-other-way"
    pair.apply()
    east, west = pair.plan.pairs[0].source, pair.plan.pairs[0].target
    records = plain(60)
    write(pair.east, pair.topic, records[:40])
    produce(pair.east, pair.topic, [key for key, *_ in records[40:]], partition=0,
            settings={"enable.idempotence": True})  # fmt: skip
    with RawLog(east, pair.topic, client_id="test") as log:
        header, _ = log.batches(40)[0]
    pair.east.create_topic(control_topic(other), config={"cleanup.policy": "compact"})
    register(east, other, RegisteredProducer(header.producer_id, "west", "east", "l"))
    write(pair.west, pair.topic, pair.copies_of(records[:40]))
    pair.checkpoint(copied_to=60)
    assert found(verify(spark, pair)) == {"lost": 20}
    opposite = OppositeTopologies(source="east", topologies=(other,), at_ms=NOW_MS)
    with LogWriter(west, control_topic(pair.name), client_id="test") as writer:
        writer.write([opposite.encode()])
    result = verify(spark, pair)
    assert result["clean"], result
    assert result["total"]["excused"] == {"loop": 20}


def test_compacted_logs_are_compared_by_the_last_value_of_each_key(spark, pair):
    pair = pair()
    pair.apply(config={"cleanup.policy": "compact"})
    records = plain(100, keys=10)
    records[95] = (b"k5", None, NOW_MS + 95, None)
    write(pair.east, pair.topic, records)
    copies = pair.copies_of(records)
    # As the cleaner would have left it: only the newest of each key.
    write(pair.west, pair.topic, copies[90:])
    pair.checkpoint(copied_to=100)
    result = verify(spark, pair)
    assert result["clean"], result
    assert result["topics"][0]["matched"] == "latest"
    assert result["total"]["compared"] == 10
    write(pair.west, pair.topic, [(b"k3", b"stale", NOW_MS, None)])
    assert found(verify(spark, pair)) == {"changed": 1}


def test_only_the_asked_hours_are_judged(spark, pair):
    pair = pair()
    pair.apply()
    hour = 3_600_000
    records = [(b"k", b"%d" % n, NOW_MS - (9 - n) * hour, None) for n in range(10)]
    write(pair.east, pair.topic, records)
    write(pair.west, pair.topic, pair.copies_of(records)[:5])
    pair.checkpoint(copied_to=10)
    early = verify(spark, pair, from_ms=NOW_MS - 9 * hour, to_ms=NOW_MS - 5 * hour)
    assert early["clean"]
    assert early["total"]["compared"] == 4
    late = verify(spark, pair, from_ms=NOW_MS - 5 * hour)
    assert found(late) == {"lost": 5}
    assert len(late["hours"]) == 6
