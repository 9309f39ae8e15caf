"""The books of an audit: complete, or the missing interval named; rounds add up."""

import json

import pytest
from copied_pair import NOW_MS, CopiedPair, plain, write

from replicator.clock import SystemClock
from replicator.errors import FencedError
from replicator.spark.audit.ledger import Bucket, Ledger, Reached
from replicator.spark.audit.run import Auditor, AuditRequest

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
    assert (missing["fromOffset"], missing["toOffset"]) == (100, 120)
    assert result["completeness"] == pytest.approx(235 / 240)
    rows = spark.read.parquet(parquet)
    assert {"topic", "bucket", "expected", "found", "missing"} <= set(rows.columns)
