"""quarantine list, show, replay and discard against real brokers."""

import json
import time

import pytest
from producing import produce
from topology_files import active_passive, write_topology
from whole_topic import read_topic

from replicator.dataplane.copy.quarantine_record import quarantine_id
from replicator.identifiers import quarantine_topic
from replicator.topology.file.load import require_plan
from replicator.wire.records.record_batch import RawRecord
from replicator.wire.requests.fetch_one import fetch_record, fetch_record_bytes
from replicator.wire.requests.produce_one import produce_record

NOW_MS = round(time.time() * 1000)
"""Old records would fall to the brokers' retention in the middle of a test."""


BOTH_ENGINES = pytest.mark.parametrize("file", ["records", "batches"], indirect=True)


@pytest.fixture
def file(request, tmp_path, unique, run):
    east, west = (request.getfixturevalue(name) for name in ("east", "west"))
    engine = getattr(request, "param", "records")
    link = active_passive([f"{unique}.*"], name="orders", engine=engine)
    path = write_topology(tmp_path / "topology.yaml", unique, (east, west), [link])
    # What is replayed keeps its time of long ago; the copy's topic gets the same setting.
    east.create_topic(f"{unique}.a", config={"retention.ms": "-1"})
    assert run("apply", "-f", path, "--yes")[0] == 0
    return path


def keep(west, unique, offset, *, value=b"value", headers=(), raw=None, omitted=False):
    """Writes a quarantine record as the lanes do."""
    import base64

    identity = quarantine_id("east->west", f"{unique}.a", 0, offset)
    about = {
        "v": 1, "id": identity, "flow": "east->west", "link": "orders", "topic": f"{unique}.a",
        "partition": 0, "offset": offset, "targetTopic": f"{unique}.a", "timestamp": 1234,
        "timestampType": "CreateTime", "keyBase64": base64.b64encode(b"key").decode(),
        "valueNull": value is None, "valueOmitted": omitted, "error": "the record is too large",
        "code": "MSG_SIZE_TOO_LARGE", "at": 1_700_000_000_000 + offset,
        "rawBase64": None if raw is None else base64.b64encode(raw).decode(),
    }  # fmt: skip
    record = {
        "key": b"{}", "value": None if omitted else value,
        "headers": [*headers, ("replicator-quarantine", json.dumps(about).encode())],
    }  # fmt: skip
    produce(west, quarantine_topic(unique, "east"), [record])
    return identity


@BOTH_ENGINES
def test_a_replayed_record_is_whole_and_names_its_origin(run, file, west, unique):
    first = keep(west, unique, 7, headers=[("trace", b"\x00\xff"), ("empty", None)])
    second = keep(west, unique, 8, value=None)
    code, text, _ = run("quarantine", "list", "-f", file, "-o", "json")
    assert code == 0
    records = json.loads(text)["records"]
    assert [record["id"] for record in records] == [first, second]
    assert records[0]["error"] == "the record is too large"
    code, text, _ = run("quarantine", "show", first, "-f", file, "-o", "json")
    assert json.loads(text)["headers"][0] == {"name": "trace", "value": "AP8="}
    code, text, errors = run("quarantine", "replay", "--all", "--yes", "-f", file, "-o", "json")
    assert code == 0, errors
    assert [record["outcome"] for record in json.loads(text)["records"]] == ["replayed"] * 2
    one, two = read_topic(west, f"{unique}.a")
    assert (one.key(), one.value(), one.timestamp()[1]) == (b"key", b"value", 1234)
    assert one.headers() == [
        ("trace", b"\x00\xff"), ("empty", None),
        ("replicator-hops", f"east/{unique}.a/0/7".encode()),
    ]  # fmt: skip
    assert two.value() is None
    assert json.loads(run("quarantine", "list", "-f", file, "-o", "json")[1])["records"] == []
    code, _, errors = run("quarantine", "replay", first, "--yes", "-f", file)
    assert code == 3
    assert "replayed already" in errors


def test_a_record_with_a_header_that_is_no_text_comes_back_byte_for_byte(
    run, file, east, west, unique
):
    plan = require_plan(file)
    strange = RawRecord(0, NOW_MS, "CreateTime", b"k", b"v", ((b"\xff\xfe", b"1"), (b"", None)))
    offset = produce_record(plan.cluster("east"), f"{unique}.a", 0, strange)
    raw = fetch_record_bytes(plan.cluster("east"), f"{unique}.a", 0, offset)
    identity = keep(west, unique, offset, raw=raw)
    assert run("quarantine", "replay", identity, "--yes", "-f", file)[0] == 0
    back = fetch_record(plan.cluster("west"), f"{unique}.a", 0, 0)
    hop = (b"replicator-hops", f"east/{unique}.a/0/{offset}".encode())
    assert back.headers == (*strange.headers, hop)
    assert (back.key, back.value, back.timestamp) == (b"k", b"v", NOW_MS)


def test_a_value_that_was_left_out_is_read_from_the_source_again(run, file, east, west, unique):
    plan = require_plan(file)
    whole = RawRecord(0, NOW_MS, "CreateTime", b"key", b"large", ())
    offset = produce_record(plan.cluster("east"), f"{unique}.a", 0, whole)
    here = keep(west, unique, offset, omitted=True)
    gone = keep(west, unique, offset + 100, omitted=True)
    code, _, errors = run("quarantine", "replay", here, "--yes", "-f", file)
    assert code == 0, errors
    assert read_topic(west, f"{unique}.a")[0].value() == b"large"
    code, _, errors = run("quarantine", "replay", gone, "--yes", "-f", file)
    assert code == 3
    assert "does not have it any more" in errors


def test_replaying_all_goes_on_past_refusals_and_reports_each(run, file, west, unique):
    gone = [keep(west, unique, offset, omitted=True) for offset in (100, 102)]
    kept = [keep(west, unique, offset) for offset in (101, 103)]
    code, text, errors = run("quarantine", "replay", "--all", "--yes", "-f", file, "-o", "json")
    assert code == 1, errors
    outcomes = {record["id"]: record["outcome"] for record in json.loads(text)["records"]}
    assert outcomes == dict.fromkeys(gone, "refused") | dict.fromkeys(kept, "replayed")
    assert len(read_topic(west, f"{unique}.a")) == 2
    code, text, _ = run("quarantine", "replay", "--all", "--yes", "-f", file)
    assert code == 1
    assert "0 records done" in text
    assert text.count("does not have it any more") == 2


def test_a_discarded_record_is_out_of_the_way_but_on_record(run, file, west, unique):
    identity = keep(west, unique, 3)
    assert run("quarantine", "discard", identity, "-f", file)[0] == 2  # nobody to ask
    assert run("quarantine", "discard", identity, "--yes", "-f", file)[0] == 0
    assert json.loads(run("quarantine", "list", "-f", file, "-o", "json")[1])["records"] == []
    settled = json.loads(run("quarantine", "list", "--settled", "-f", file, "-o", "json")[1])
    assert [record["outcome"] for record in settled["records"]] == ["discarded"]
    assert read_topic(west, f"{unique}.a") == []


def test_an_unknown_id_and_no_choice_are_wrong_input(run, file):
    assert run("quarantine", "show", "nothing", "-f", file)[0] == 2
    assert run("quarantine", "replay", "-f", file)[0] == 2
    assert run("quarantine", "replay", "x", "--all", "-f", file)[0] == 2
