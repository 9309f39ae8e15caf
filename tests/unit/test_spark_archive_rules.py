"""Pure rules of archives, restores and audits."""

import json

import pytest

from replicator.errors import StoredFormatError
from replicator.spark.archive.rounds import decide_round
from replicator.spark.archive_files.manifest import (
    Archive,
    ArchivedFile,
    ArchivedRange,
    ArchivedTopic,
    Commit,
    Lost,
    folded,
    manifest_name,
    parse_commit,
)
from replicator.spark.archive_files.summary import (
    encode_summary,
    is_summary,
    number_of,
    parse_summary,
    summary_name,
)
from replicator.spark.audit.ledger import (
    Bucket,
    Ledger,
    Reached,
    decode_ledger,
    encode_bucket,
    encode_reached,
)
from replicator.spark.audit.run import audit_json
from replicator.spark.base.ranges import Range
from replicator.spark.restore.selection import (
    RestoreProgress,
    Selection,
    chosen_files,
    decode_progress,
    restore_id,
)

FILE = ArchivedFile("data/a.parquet", "t", "2026-01-31", "07", 10)
FIRST = Commit(
    1, "append", 5, "east", "id", (ArchivedRange("t", 0, 0, 10, 9),), (FILE,),
    topics=(ArchivedTopic("t", "x", 1, {"retention.ms": "5"}),),
)  # fmt: skip


def test_a_manifest_reads_back_as_it_was_written():
    assert parse_commit(FIRST.to_json(), path="x") == FIRST
    changed = {**json.loads(FIRST.to_json()), "v": 2}
    with pytest.raises(StoredFormatError, match="version 2"):
        parse_commit(json.dumps(changed), path="x")
    with pytest.raises(StoredFormatError):
        parse_commit('{"v": 1}', path="x")


def test_commits_add_up_and_replaced_files_no_longer_count():
    whole = ArchivedFile("data/b.parquet", "t", "2026-01-31", "07", 12)
    second = Commit(2, "compaction", 6, "east", "id", files=(whole,), replaces=("data/a.parquet",))
    archive = folded([second, FIRST])
    assert list(archive.files) == ["data/b.parquet"]
    assert archive.ends == {("t", 0): 10}
    assert archive.number == 2


def test_a_round_goes_on_where_the_archive_ends_and_names_what_is_gone():
    archive = folded([FIRST])
    taken = decide_round(archive, {("t", 0): 15}, {("t", 0): 20}, {"t": "x"})
    assert taken.ranges == (Range("t", 0, 15, 20),)
    assert taken.lost == (Lost("t", 0, 10, 15),)
    again = decide_round(archive, {("t", 0): 0}, {("t", 0): 10}, {"t": "x"})
    assert (again.ranges, again.lost, again.recreated) == ((), (), ())


def test_what_is_gone_is_reported_once_also_where_nothing_is_left_to_be_read():
    gone = Commit(2, "append", 6, "east", "id", lost=(Lost("t", 0, 10, 20),))
    archive = folded([FIRST, gone])
    again = decide_round(archive, {("t", 0): 20}, {("t", 0): 20}, {"t": "x"})
    assert (again.ranges, again.lost, again.recreated) == ((), (), ())


def test_a_summary_stands_for_the_commits_before_it():
    second = Commit(
        2, "append", 6, "east", "id", (ArchivedRange("t", 0, 20, 30, 10),),
        (ArchivedFile("data/b.parquet", "t", "2026-01-31", "08", 12),),
        lost=(Lost("t", 0, 10, 20),),
    )  # fmt: skip
    whole = folded([FIRST, second])
    read = parse_summary(encode_summary(whole), path="x")
    assert read == whole
    third = Commit(3, "append", 7, "east", "id", (ArchivedRange("t", 0, 30, 31, 1),))
    assert folded([third], read) == folded([FIRST, second, third])
    assert [is_summary(name) for name in (summary_name(7), manifest_name(7))] == [True, False]
    assert number_of(f"/a/{summary_name(7)}") == number_of(f"/a/{manifest_name(7)}") == 7
    with pytest.raises(StoredFormatError, match="version 9"):
        parse_summary('{"v": 9}', path="x")


def test_a_recreated_topic_is_never_read_from_the_old_position():
    archive = folded([FIRST])
    shorter = decide_round(archive, {("t", 0): 0}, {("t", 0): 5}, {"t": "x"})
    other = decide_round(archive, {("t", 0): 0}, {("t", 0): 50}, {"t": "y"})
    assert shorter.recreated == other.recreated == (("t", 0),)
    assert not decide_round(Archive(), {("t", 0): 0}, {("t", 0): 5}, {}).recreated


def test_only_files_of_the_asked_hours_are_read():
    archive = folded([FIRST])
    hour = 1_769_842_800_000  # 2026-01-31T07:00:00Z
    assert chosen_files(archive, Selection(("t",), from_ms=hour, to_ms=hour + 1)) == [FILE]
    assert chosen_files(archive, Selection(("t",), from_ms=hour + 3_600_000)) == []
    assert chosen_files(archive, Selection(("t",), to_ms=hour)) == []
    assert chosen_files(archive, Selection(("u",))) == []


def test_the_same_restore_has_the_same_id_and_another_has_another():
    one = restore_id("/a", "west", None, Selection(("t",)))
    assert one == restore_id("/a", "west", None, Selection(("t",)))
    others = {
        restore_id("/b", "west", None, Selection(("t",))),
        restore_id("/a", "east", None, Selection(("t",))),
        restore_id("/a", "west", "u", Selection(("t",))),
        restore_id("/a", "west", None, Selection(("t",), from_ms=5)),
    }
    assert len(others | {one}) == 5


def test_progress_reads_back_and_unknown_versions_are_refused():
    progress = RestoreProgress("r", "t", 3, 40, 38)
    assert decode_progress("r", "t", 3, progress.encode()[1]) == progress
    assert decode_progress("r", "t", 3, None) == RestoreProgress("r", "t", 3)
    with pytest.raises(StoredFormatError):
        decode_progress("r", "t", 3, b'{"v": 9}')


def test_spans_that_nothing_is_added_to_leave_the_books():
    ledger = Ledger()
    ledger.add([Bucket("t", 0, 0, expected=5), Bucket("t", 0, 9, expected=5)], {}, now_ms=100)
    ledger.add([Bucket("t", 0, 9, expected=1)], {("t", 0): Reached(7, 7)}, now_ms=200)
    (old,) = ledger.forget(150)
    assert (old.at_ms, old.counted_ms) == (0, 100)
    assert list(ledger.buckets) == [("t", 0, 9)]
    assert ledger.buckets["t", 0, 9].expected == 6
    assert ledger.reached == {("t", 0): Reached(7, 7)}


def test_books_read_back_by_their_width():
    bucket = Bucket("t", 0, 3_600_000, expected=5, found=4, from_offset=7, to_offset=12)
    stored = [
        encode_bucket(bucket, seconds=3600),
        encode_reached(("t", 0), Reached(13, 14), seconds=3600),
    ]
    decoded = [(json.loads(key), json.loads(value)) for key, value in stored]
    ledger = decode_ledger(decoded, seconds=3600)
    assert list(ledger.buckets.values()) == [bucket]
    assert ledger.reached == {("t", 0): Reached(13, 14)}
    assert not decode_ledger(decoded, seconds=60).buckets
    with pytest.raises(StoredFormatError):
        decode_ledger([({"seconds": 60}, {})], seconds=60)


def test_the_missing_interval_is_named():
    buckets = [
        Bucket("t", 0, 0, expected=5, found=4, from_offset=7, to_offset=12),
        Bucket("t", 1, 0, expected=5, found=5, from_offset=0, to_offset=4),
    ]
    result = audit_json("a->b", buckets, seconds=60, at_ms=0, skipped=[])
    assert result["missing"] == [
        {
            "topic": "t", "partition": 0, "from": "1970-01-01T00:00:00.000Z",
            "to": "1970-01-01T00:01:00.000Z", "fromOffset": 7, "toOffset": 13, "records": 1,
        }
    ]  # fmt: skip
    assert result["completeness"] == 0.9
    assert not result["complete"]
