"""A history survives its file, an unfinished write stays unknown, and the docs say what is meant."""

import random
from pathlib import Path

import pytest
from synthetic_history import clean_history

from replicator.errors import StoredFormatError
from replicator.testing.checker.anomalies import MEANINGS
from replicator.testing.checker.check import check
from replicator.testing.checker.history import (
    Completed,
    Sent,
    decode,
    digest,
    digest_headers,
    read_events,
)
from replicator.testing.workload.recorder import Recorder
from replicator.testing.workload.records import RecordStyle, new_record, record_id


def test_a_recorded_file_is_judged_as_the_events_are(tmp_path):
    events = clean_history(records=100)
    with Recorder(tmp_path / "history.jsonl") as recorder:
        recorder.record(*events)
    assert list(read_events(tmp_path / "history.jsonl")) == events == recorder.events()
    assert check(tmp_path / "history.jsonl") == check(events)


def test_a_line_cut_short_by_a_crash_is_left_out(tmp_path):
    path = tmp_path / "history.jsonl"
    with Recorder(path) as recorder:
        recorder.record(*clean_history(records=10))
    path.write_bytes(path.read_bytes()[:-5])
    assert list(read_events(path)) == recorder.events()[:-1]


def test_a_file_of_another_version_is_refused(tmp_path):
    path = tmp_path / "history.jsonl"
    path.write_bytes(b'{"e":"history","v":2}\n')
    with pytest.raises(StoredFormatError, match="version 1"):
        list(read_events(path))


@pytest.mark.parametrize("line", [b"{}", b"[]", b"no json", b'{"e":"sent"}', b'{"e":"other"}'])
def test_a_line_that_is_no_event_is_refused(line):
    with pytest.raises(StoredFormatError):
        decode(line)


def test_a_write_without_an_outcome_is_unknown():
    sent = Sent("a.1", "a", "t", 0, None, None, "", 1, None, None, 0.0)
    assert check([sent]).counts["unknown"] == 1
    assert check([sent, Completed("a.1", "ok", 0, 0, 0.1)]).counts["unknown"] == 0


def test_null_and_empty_are_different_contents():
    assert digest(None) != digest(b"")
    assert digest_headers([("a", None)]) != digest_headers([("a", b"")])
    assert digest_headers([("a", b"1"), ("b", b"2")]) != digest_headers([("b", b"2"), ("a", b"1")])
    assert digest_headers([]) == digest_headers(None) == ""


def test_the_hop_header_is_no_difference_in_content():
    assert digest_headers([("a", b"1"), ("replicator-hops", b"x/y/0/1")]) == digest_headers(
        [("a", b"1")]
    )


def test_records_are_the_same_for_the_same_seed_and_carry_their_id():
    style = RecordStyle(tombstone_ratio=0.3)
    first, second = random.Random(3), random.Random(3)
    kinds = set()
    for number in range(200):
        record = new_record(first, id_=f"w.{number}", style=style)
        assert record == new_record(second, id_=f"w.{number}", style=style)
        assert record_id(record.value, record.headers) == f"w.{number}"
        kinds.add((record.key is None, record.value is None, bool(record.headers)))
    assert len(kinds) == 5  # tombstones have a key, and a header for their id


def test_the_docs_list_every_anomaly_with_its_meaning():
    docs = (Path(__file__).parents[2] / "docs" / "testing.md").read_text()
    for anomaly, meaning in MEANINGS.items():
        assert f"| {anomaly} | {meaning} |" in docs
