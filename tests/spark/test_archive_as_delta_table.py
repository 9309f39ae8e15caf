"""An archive that is a Delta table too: the Delta library reads every record exactly once, whatever was interrupted."""

import json
import shutil

import pytest
from copied_pair import NOW_MS, CopiedPair, plain, write
from played_s3 import played_s3

from replicator.cli.main import run_command
from replicator.clock import SystemClock
from replicator.errors import InputError
from replicator.spark.archive.source import Source
from replicator.spark.archive.write import Archiver
from replicator.spark.archive_files.delta import DeltaLog
from replicator.spark.archive_files.manifest import Archive, ArchivedFile
from replicator.spark.archive_files.store import load_archive
from replicator.spark.base.files import Files
from replicator.spark.restore.run import RestoreRequest, restore
from replicator.spark.restore.selection import Selection


@pytest.fixture
def pair(tmp_path, east, west, unique):
    pair = CopiedPair(tmp_path, unique, east, west)
    pair.apply(partitions=1)
    return pair


def archiver(spark, pair, folder, *, as_delta=None):
    source = Source(pair.plan.cluster("east"), str(pair.file), (pair.topic,))
    return Archiver(spark, source, str(folder), clock=SystemClock(), as_delta=as_delta)


def table_at(place, **options):
    """The table as the Delta library reads it."""
    import deltalake  # here, so that an environment without it fails these tests alone

    return deltalake.DeltaTable(str(place), **options)


def offsets(folder):
    """All offsets of the table, as the Delta library and pyarrow read them."""
    return sorted(table_at(folder).to_pyarrow_table(columns=["offset"])["offset"].to_pylist())


def log_versions(folder):
    return sorted((folder / "_delta_log").glob("*.json"))


@pytest.mark.slow
def test_rounds_and_compactions_are_in_the_table_once_and_the_archive_is_restored(
    spark, pair, tmp_path
):
    folder = tmp_path / "archive"
    records = plain(50)
    records[7] = (None, b"", NOW_MS + 7, [("a", b"1"), ("a", None)])
    records[8] = (b"", None, NOW_MS - 7_200_000, None)
    write(pair.east, pair.topic, records, 0)
    first = archiver(spark, pair, folder, as_delta=True)
    assert first.round()["records"] == 50
    assert offsets(folder) == list(range(50))
    for _ in range(2):
        write(pair.east, pair.topic, plain(10), 0)
        archiver(spark, pair, folder).round()  # once a table, always a table
    assert offsets(folder) == list(range(70))
    before = table_at(folder).version()
    assert archiver(spark, pair, folder).compact(most_files=1)["before"] == 3
    table = table_at(folder)
    manifest = load_archive(Files(spark, str(folder)))
    assert {uri.partition(f"{folder}/")[2] for uri in table.file_uris()} == set(manifest.files)
    assert table.transaction_version("replicator-archive") == manifest.number
    assert offsets(folder) == list(range(70))
    # A compaction moves records and changes none; the opening before it adds nothing either.
    last = [json.loads(line) for line in log_versions(folder)[-1].read_text().splitlines()]
    assert not any(
        each["dataChange"] for line in last for each in line.values() if "dataChange" in each
    )
    assert table.version() > before
    rows = (
        table.to_pyarrow_table(filters=[("topic", "=", pair.topic)]).sort_by("offset").to_pylist()
    )
    assert (rows[7]["key"], rows[7]["value"]) == (None, b"")
    assert [tuple(each.values()) for each in rows[7]["headers"]] == [("a", b"1"), ("a", None)]
    assert round(rows[7]["timestamp"].timestamp() * 1000) == NOW_MS + 7
    wanted = RestoreRequest(pair.name, pair.plan.cluster("west"), Selection((pair.topic,)))
    assert restore(spark, str(folder), wanted)["records"] == 70


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["append", "compaction"])
def test_a_command_killed_between_manifest_and_delta_log_is_completed_by_the_next(
    spark, pair, tmp_path, kind
):
    folder = tmp_path / "archive"
    for number in range(2):
        write(pair.east, pair.topic, plain(10), 0)
        archiver(spark, pair, folder, as_delta=True if number == 0 else None).round()
    killed = archiver(spark, pair, folder)
    kept = tmp_path / "log"
    shutil.copytree(folder / "_delta_log", kept)
    if kind == "append":
        write(pair.east, pair.topic, plain(10), 0)
        killed.round()
    else:
        killed.compact(most_files=1)
    # The log as it would be had the command been killed before it wrote there.
    shutil.rmtree(folder / "_delta_log")
    kept.rename(folder / "_delta_log")
    count = 30 if kind == "append" else 20
    archiver(spark, pair, folder)
    assert offsets(folder) == list(range(count))
    assert restore(
        spark, str(folder),
        RestoreRequest(pair.name, pair.plan.cluster("west"), Selection((pair.topic,))),
    )["records"] == count  # fmt: skip


@pytest.mark.slow
def test_duckdb_reads_the_table_as_sql(spark, pair, tmp_path):
    """Over the Delta library's dataset: DuckDB's own extension for Delta is not on any package registry."""
    duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed")
    folder = tmp_path / "archive"
    records = plain(20)
    records[3] = (None, b"", NOW_MS + 3, [("a", b"1")])
    write(pair.east, pair.topic, records, 0)
    archiver(spark, pair, folder, as_delta=True).round()
    orders = table_at(folder).to_pyarrow_dataset()
    read = duckdb.connect().register("orders", orders)
    asked = 'select count(*), min("offset"), max("offset"), count(key) from orders where topic = ?'
    assert read.execute(asked, [pair.topic]).fetchall() == [(20, 0, 19, 19)]
    one = 'select value, headers, epoch_ms("timestamp") from orders where "offset" = 3'
    assert read.execute(one).fetchall() == [(b"", [{"key": "a", "value": b"1"}], NOW_MS + 3)]


def test_a_table_may_be_begun_late_and_is_not_left_behind(
    spark, pair, tmp_path, monkeypatch, capsys
):
    folder = tmp_path / "archive"
    write(pair.east, pair.topic, plain(10), 0)
    command = ["archive", "-f", str(pair.file), "--cluster", "east", "--topic", pair.topic,
               "--archive", str(folder)]  # fmt: skip
    assert run_command(command) == 0
    assert not (folder / "_delta_log").exists()
    assert run_command([*command, "--format", "delta"]) == 0
    assert offsets(folder) == list(range(10))
    versions = log_versions(folder)
    with pytest.raises(InputError, match="would no longer be kept up to date"):
        archiver(spark, pair, folder, as_delta=False)
    assert log_versions(folder) == versions
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    capsys.readouterr()
    assert run_command([*command, "--format", "delta"]) == 1
    assert "pip install 'replicator[spark,delta]'" in capsys.readouterr().err


def held(number, *paths):
    """What a manifest says after so many commits."""
    files = [ArchivedFile(f"data/topic=t/date=none/hour=none/{each}", "t", "none", "none", 9, 1)
             for each in paths]  # fmt: skip
    return Archive(number=number, files={each.path: each for each in files})


def named(table):
    return sorted(uri.rpartition("/")[2] for uri in table.file_uris())


def test_a_command_that_lost_the_archive_changes_nothing_in_the_log(tmp_path):
    log = DeltaLog(f"file:{tmp_path}", {})
    log.create()
    log.bring_up_to(held(3, "a", "b"), at_ms=1)
    log.bring_up_to(held(2, "a"), at_ms=2)
    assert named(table_at(tmp_path)) == ["a", "b"]
    version = table_at(tmp_path).version()
    log.bring_up_to(held(3, "a", "b"), at_ms=3)
    assert table_at(tmp_path).version() == version
    log.bring_up_to(held(5, "c"), at_ms=4)
    assert named(table_at(tmp_path)) == ["c"]


def test_the_log_is_kept_in_an_object_store_with_the_settings_of_s3a():
    objects = {}
    with played_s3(objects) as endpoint:
        conf = {
            "spark.hadoop.fs.s3a.endpoint": f"http://{endpoint}",
            "spark.hadoop.fs.s3a.access.key": "key",
            "spark.hadoop.fs.s3a.secret.key": "secret",
            "spark.hadoop.fs.s3a.endpoint.region": "eu-west-1",
        }
        log = DeltaLog("s3a://history/shop", conf)
        log.create()
        for number in (1, 2):
            log.bring_up_to(held(number, *"ab"[:number]), at_ms=number)
        options = {
            "aws_endpoint": f"http://{endpoint}", "aws_allow_http": "true", "aws_region": "eu-west-1",
            "aws_access_key_id": "key", "aws_secret_access_key": "secret",
        }  # fmt: skip
        table = table_at("s3://history/shop", storage_options=options)
        assert named(table) == ["a", "b"]
        assert table.transaction_version("replicator-archive") == 2
    assert sorted(objects) == [f"history/shop/_delta_log/{number:020d}.json" for number in range(3)]


def test_a_file_system_without_a_delta_log_is_refused_by_name():
    with pytest.raises(InputError, match="no Delta log on hdfs://"):
        DeltaLog("hdfs://name/shop", {})
