"""The books of an audit: complete, or the missing interval named; rounds add up."""

import json

import pytest
from confluent_kafka import TopicPartition
from copied_pair import NOW_MS, CopiedPair, plain, write

from replicator.clock import SystemClock
from replicator.errors import FencedError
from replicator.spark.audit.ledger import Bucket, Ledger, Reached
from replicator.spark.audit.run import Auditor, AuditRequest
from replicator.testing.cluster.topics import delete_topic

HOUR_MS = 3_600_000


def test_books_add_up_over_rounds():
    ledger = Ledger()
    ledger.add([Bucket("t", 0, 0, expected=5, found=4, from_offset=0, to_offset=4)], {})
    ledger.add(
        [Bucket("t", 0, 0, expected=2, found=3, from_offset=5, to_offset=6)],
        {("t", 0): Reached(7, 7)},
    )
    held = ledger.buckets["t", 0, 0]
    assert (held.expected, held.found, held.missing) == (7, 7, 0)
    assert (held.from_offset, held.to_offset) == (0, 6)


@pytest.fixture
def pair(tmp_path, east, west, unique):
    return CopiedPair(tmp_path, unique, east, west)


def test_rounds_count_what_is_new_and_name_the_missing_interval(spark, pair, tmp_path, capsys):
    from replicator.cli.main import run_command

    east, west = pair.east, pair.west
    pair.apply(partitions=2)
    records = plain(100)
    late = [(b"k", b"late", NOW_MS + HOUR_MS // 2 * 3, None)] * 20
    for partition in range(2):
        write(east, pair.topic, records + late, partition)
        write(west, pair.topic, pair.copies_of(records, partition), partition)
        pair.checkpoint(copied_to=90, partition=partition, pairs=((0, 0), (50, 50)))
    parquet = str(tmp_path / "audit")
    auditor = Auditor(
        spark, pair.plan, AuditRequest("east->west", parquet=parquet), clock=SystemClock()
    )
    first = auditor.round()
    assert first["complete"], first
    assert sum(each["expected"] for each in first["topics"]) == 180
    assert sum(each["found"] for each in first["topics"]) == 180
    assert first["topics"][0]["latencyMeanMs"] is not None
    again = auditor.round()
    assert sum(each["found"] for each in again["topics"]) == 180
    # The rest of partition 0 arrives but for five records; partition 1 is complete.
    copies = pair.copies_of(records + late)[100:]
    write(west, pair.topic, copies[:15])
    write(west, pair.topic, pair.copies_of(records + late, 1)[100:], 1)
    for partition in range(2):
        pair.checkpoint(copied_to=120, partition=partition)
    capsys.readouterr()
    code = run_command(
        ["audit", "-f", str(pair.file), "--flow", "east->west", "-o", "json",
         "--parquet", parquet]
    )  # fmt: skip
    assert code == 4
    result = json.loads(capsys.readouterr().out)
    with pytest.raises(FencedError):
        auditor.round()
    auditor.close()
    assert sum(each["expected"] for each in result["topics"]) == 240
    (missing,) = result["missing"]
    assert (missing["partition"], missing["records"]) == (0, 5)
    assert (missing["fromOffset"], missing["toOffset"]) == (115, 120)
    assert result["completeness"] == pytest.approx(235 / 240)
    rows = spark.read.parquet(parquet)
    assert {"topic", "bucket", "expected", "found", "missing"} <= set(rows.columns)


@pytest.fixture
def audit(spark, pair):
    """One round after the other over the same books."""
    auditors = []

    def round_of_audit():
        auditors.append(Auditor(spark, pair.plan, AuditRequest("east->west"), clock=SystemClock()))
        return auditors[-1].round()

    yield round_of_audit
    for each in auditors:
        each.close()


def missing_in(result):
    return [(each["records"], each["fromOffset"], each["toOffset"]) for each in result["missing"]]


def test_a_target_that_was_created_again_is_counted_again(pair, audit):
    pair.apply()
    records = plain(1_000)
    write(pair.east, pair.topic, records)
    copies = pair.copies_of(records)
    write(pair.west, pair.topic, copies)
    pair.checkpoint(copied_to=1_000)
    assert audit()["complete"]
    delete_topic(pair.west.admin(), name=pair.topic)
    pair.west.create_topic(pair.topic, partitions=1)
    write(pair.west, pair.topic, copies[:300] + copies[700:])
    assert missing_in(audit()) == [(400, 300, 700)]


def test_foreign_records_and_a_lost_head_do_not_hide_what_is_missing(pair, audit):
    pair.apply()
    records = plain(100)
    write(pair.east, pair.topic, records)
    copies = pair.copies_of(records)
    copies[50:60] = [(b"somebody", b"else %d" % n, NOW_MS, None) for n in range(10)]
    copies[70] = records[70]  # copied without the header, which would have made it too large
    write(pair.west, pair.topic, copies)
    pair.checkpoint(copied_to=100)
    assert missing_in(audit()) == [(10, 50, 60)]
    # An hour old, and the target keeps records for a week: its retention did not delete these.
    place = TopicPartition(pair.topic, 0, 20)
    for answer in pair.west.admin().delete_records([place]).values():
        answer.result(20)
    assert missing_in(audit()) == [(30, 0, 60)]


def test_counting_again_finds_what_a_duplicate_has_hidden(spark, pair, capsys):
    from replicator.cli.main import run_command

    pair.apply()
    records = plain(100)
    write(pair.east, pair.topic, records)
    copies = pair.copies_of(records)
    write(pair.west, pair.topic, copies[:40] + copies[43:] + copies[90:93])
    pair.checkpoint(copied_to=100)
    command = ["audit", "-f", str(pair.file), "--flow", "east->west"]
    assert run_command(command) == 0
    assert "audit east->west: 100 records expected in" in capsys.readouterr().out
    assert run_command([*command, "--again", "1m"]) == 0  # younger than every record
    assert run_command([*command, "--again", "2h"]) == 4
    said = capsys.readouterr().out
    assert "MISSING 3 of" in said
    assert "source offsets 40 to 43" in said
    assert said.rstrip().endswith(": 3 missing.")
    assert run_command(command) == 4  # the books have it now
    assert run_command([*command, "--again", "soon"]) == 2
