"""Topics to Parquet and back: exactly once, in order, with every field, killed or not."""

import json

import pyarrow.parquet as pq
import pytest
from confluent_kafka import Producer, TopicPartition
from copied_pair import NOW_MS, CopiedPair, plain, write

from replicator.cli.main import run_command
from replicator.clock import SystemClock
from replicator.errors import AlreadyExistsError, RefusedError
from replicator.spark.archive.source import Source
from replicator.spark.archive.write import Archiver
from replicator.spark.archive_files.manifest import Commit, manifest_name
from replicator.spark.archive_files.parquet import read_files, with_folders, write_files
from replicator.spark.archive_files.store import commit, load_archive, sum_up, sweep
from replicator.spark.base.files import Files
from replicator.spark.restore.run import RestoreRequest, restore
from replicator.spark.restore.selection import Selection
from replicator.spark.source.record_batches import SCHEMA_DDL
from replicator.spark.verify.run import VerifyRequest, verify_flow

HEADERS = [("a", b"1"), ("a", None), ("b", b"")]


@pytest.fixture
def pair(tmp_path, east, west, unique):
    return CopiedPair(tmp_path, unique, east, west)


def archiver(spark, pair, folder):
    source = Source(pair.plan.cluster("east"), str(pair.file), (pair.topic,))
    return Archiver(spark, source, str(folder), clock=SystemClock())


def wipe(cluster, topic, *, partitions):
    """Deletes and makes the topic again."""
    from replicator.testing.cluster.topics import delete_topic

    delete_topic(cluster.admin(), name=topic)
    cluster.create_topic(topic, partitions=partitions)


def rows_of(spark, cluster, topic):
    frame = (
        spark.read.format("replicator-kafka")
        .option("bootstrapServers", ",".join(cluster.bootstrap_servers))
        .option("subscribe", topic).load().orderBy("partition", "offset")
    )  # fmt: skip
    return frame.collect()


def test_archive_wipe_restore_and_verify_is_clean(spark, pair, tmp_path):
    pair.apply(partitions=2)
    for partition in range(2):
        records = plain(150)
        records[7] = (None, b"", NOW_MS + 7, HEADERS)
        records[8] = (b"", None, NOW_MS - 7_200_000, None)
        write(pair.east, pair.topic, records, partition)
        pair.checkpoint(copied_to=150, partition=partition)
    folder = tmp_path / "archive"
    first = archiver(spark, pair, folder)
    assert first.round()["records"] == 300
    assert first.round()["commit"] is None
    wipe(pair.west, pair.topic, partitions=2)
    wanted = RestoreRequest(pair.name, pair.plan.cluster("west"), Selection((pair.topic,)))
    done = restore(spark, str(folder), wanted)
    assert (done["records"], done["skipped"]) == (300, 0)
    result = verify_flow(spark, pair.plan, VerifyRequest("east->west"))
    assert result["clean"], result
    assert result["total"]["compared"] == 300
    again = restore(spark, str(folder), wanted)
    assert (again["records"], again["skipped"]) == (0, 300)
    wipe(pair.west, pair.topic, partitions=2)
    anew = restore(spark, str(folder), wanted)
    assert (anew["records"], anew["skipped"]) == (300, 0)
    rows = rows_of(spark, pair.west, pair.topic)
    assert len(rows) == 300
    assert [(each.key, each.value) for each in rows[7].headers] == [
        *HEADERS, ("replicator-hops", f"east/{pair.topic}/0/7".encode()),
    ]  # fmt: skip
    assert (rows[7].key, rows[7].value) == (None, b"")
    assert (rows[8].key, rows[8].value) == (b"", None)


def test_times_are_microseconds_and_files_of_older_releases_are_read_beside_them(
    spark, pair, tmp_path
):
    kinds = "spark.sql.parquet.outputTimestampType"
    pair.apply(partitions=1)
    folder = tmp_path / "archive"
    write(pair.east, pair.topic, plain(20), 0)
    spark.conf.set(kinds, "INT96")  # as releases before wrote them
    try:
        assert archiver(spark, pair, folder).round()["records"] == 20
    finally:
        spark.conf.set(kinds, "TIMESTAMP_MICROS")
    write(pair.east, pair.topic, plain(20), 0)
    assert archiver(spark, pair, folder).round()["records"] == 20
    schemas = [pq.ParquetFile(file).schema for file in folder.rglob("*.parquet")]
    written = {each.column(each.names.index("timestamp")).physical_type for each in schemas}
    assert written == {"INT96", "INT64"}
    wanted = RestoreRequest(pair.name, pair.plan.cluster("west"), Selection((pair.topic,)))
    assert restore(spark, str(folder), wanted)["records"] == 40
    times = [row.timestamp for row in rows_of(spark, pair.west, pair.topic)]
    assert times == [row.timestamp for row in rows_of(spark, pair.east, pair.topic)]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_more_records_of_a_megabyte_than_memory_are_archived_and_restored(spark, pair, tmp_path):
    assert spark.conf.get("spark.driver.memory") == "1g"
    large = {"max.message.bytes": "2000000", "compression.type": "producer"}
    pair.east.create_topic(pair.topic, partitions=1, config=large)
    count, filler = 1_500, b"x" * 1_000_000
    producer = Producer(
        {**pair.east.client_settings(), "compression.type": "zstd", "message.max.bytes": 2_000_000}
    )
    for number in range(count):
        producer.produce(pair.topic, b"%d " % number + filler, partition=0, timestamp=NOW_MS)
        producer.flush(30)
    folder = tmp_path / "archive"
    assert archiver(spark, pair, folder).round()["records"] == count
    wanted = RestoreRequest(pair.name, pair.plan.cluster("west"), Selection((pair.topic,)))
    assert restore(spark, str(folder), wanted)["records"] == count
    frame = (
        spark.read.format("replicator-kafka")
        .option("bootstrapServers", ",".join(pair.west.bootstrap_servers))
        .option("subscribe", pair.topic).load()
        .selectExpr("offset", "length(value) as size", "substring(value, 1, 8) as head")
    )  # fmt: skip
    rows = frame.orderBy("offset").collect()
    assert [int(bytes(row.head).split()[0]) for row in rows] == list(range(count))
    assert min(row.size for row in rows) > len(filler)


def test_what_a_killed_command_left_behind_never_counts(spark, pair, tmp_path):
    pair.apply()
    write(pair.east, pair.topic, plain(50))
    folder = tmp_path / "archive"
    archiver(spark, pair, folder).round()
    files = Files(spark, str(folder))
    held = load_archive(files)
    known = next(iter(held.files))
    stray = known.replace(".parquet", "-stray.parquet")
    (folder / stray).write_bytes((folder / known).read_bytes())
    (folder / "_staging" / "x").mkdir(parents=True)
    write(pair.east, pair.topic, plain(10))
    second = archiver(spark, pair, folder)
    assert second.swept == 1
    assert not (folder / stray).exists()
    assert second.round()["records"] == 10
    archive = load_archive(files)
    frame = read_files(spark, files, list(archive.files.values()))
    assert sorted(row.offset for row in frame.collect()) == list(range(60))
    with pytest.raises(AlreadyExistsError):
        files.create(files.path("_manifest", manifest_name(1)), "{}")
    assert sweep(files, archive) == 0


def test_a_command_that_opens_an_archive_ends_the_one_before_without_harm(spark, pair, tmp_path):
    pair.apply()
    write(pair.east, pair.topic, plain(50))
    folder = tmp_path / "archive"
    first = archiver(spark, pair, folder)
    files = Files(spark, str(folder))
    # The first has put its files where its commit will name them when the second sweeps.
    number = load_archive(files).number + 1
    rows = spark.createDataFrame(rows_of(spark, pair.east, pair.topic), SCHEMA_DDL)
    written = write_files(files, with_folders(rows), number)
    second = archiver(spark, pair, folder)
    assert second.swept == len(written)
    with pytest.raises(AlreadyExistsError, match="another command writes this archive"):
        commit(files, Commit(number, "append", 0, "east", "id", files=tuple(written)))
    with pytest.raises(AlreadyExistsError):
        first.round()
    assert second.round()["records"] == 50
    third = archiver(spark, pair, folder)
    assert third.round()["commit"] is None
    archive = load_archive(files)
    frame = read_files(spark, files, list(archive.files.values()))
    assert sorted(row.offset for row in frame.collect()) == list(range(50))


def test_many_commits_become_one_summary_that_says_the_same(spark, pair, tmp_path):
    pair.apply()
    write(pair.east, pair.topic, plain(10))
    folder = tmp_path / "archive"
    for _ in range(3):
        archiver(spark, pair, folder).round()
    files = Files(spark, str(folder))
    before = load_archive(files)
    sum_up(files, before)
    assert len(files.list(files.path("_manifest"))) == 1
    assert load_archive(files) == before
    write(pair.east, pair.topic, plain(5))
    assert archiver(spark, pair, folder).round()["records"] == 5
    assert load_archive(files).ends == {(pair.topic, 0): 15}


def test_small_files_become_one_and_hold_the_same(spark, pair, tmp_path):
    pair.apply()
    folder = tmp_path / "archive"
    for _ in range(3):
        write(pair.east, pair.topic, plain(20))
        made = archiver(spark, pair, folder)
        made.round()
    files = Files(spark, str(folder))
    before = load_archive(files)
    assert len(before.files) >= 3
    assert made.compact(most_files=2)["after"] == len({f.hour for f in before.files.values()})
    after = load_archive(files)
    frame = read_files(spark, files, list(after.files.values()))
    assert sorted(row.offset for row in frame.collect()) == list(range(60))
    on_disk = [each.path for each in files.list(files.path("data")) if ".parquet" in each.path]
    assert len([path for path in on_disk if path.endswith(".parquet")]) == len(after.files)


def test_offsets_that_retention_took_are_in_the_manifest(spark, pair, tmp_path):
    pair.apply()
    write(pair.east, pair.topic, plain(10))
    folder = tmp_path / "archive"
    archiver(spark, pair, folder).round()
    write(pair.east, pair.topic, plain(10))
    gone = TopicPartition(pair.topic, 0, 15)
    for answer in pair.east.admin().delete_records([gone]).values():
        answer.result(20)
    result = archiver(spark, pair, folder).round()
    assert result["lost"] == [{"topic": pair.topic, "partition": 0, "from": 10, "to": 15}]
    assert result["records"] == 5


def test_a_killed_first_round_is_continued_behind_its_last_commit(spark, pair, tmp_path):
    pair.apply(partitions=2)
    for partition in range(2):
        write(pair.east, pair.topic, plain(150), partition)
    source = Source(pair.plan.cluster("east"), str(pair.file), (pair.topic,))

    def opened():
        folder = str(tmp_path / "archive")
        return Archiver(spark, source, folder, clock=SystemClock(), most_per_commit=100)

    killed = opened()
    assert killed._part({})["records"] == 100  # and nothing after it
    done = opened().round()
    assert (done["records"], done["commits"]) == (200, 2)
    assert opened().round()["commit"] is None
    held = load_archive(Files(spark, str(tmp_path / "archive")))
    assert held.ends == {(pair.topic, 0): 150, (pair.topic, 1): 150}


def test_a_part_of_history_goes_into_a_new_view(spark, pair, tmp_path, capsys):
    pair.apply()
    hour = 3_600_000
    records = [
        (b"%s-%d" % (b"a" if n % 2 else b"b", n), b"v%d" % n, NOW_MS - (9 - n) * hour, None)
        for n in range(10)
    ]
    write(pair.east, pair.topic, records)
    folder = str(tmp_path / "archive")
    common = ["-f", str(pair.file), "--cluster", "east", "--archive", folder]
    assert run_command(["archive", *common, "--topic", pair.topic]) == 0
    view = f"{pair.topic}.view"
    from datetime import UTC, datetime

    begin = datetime.fromtimestamp((NOW_MS - 7 * hour) / 1000, UTC).isoformat()
    capsys.readouterr()
    code = run_command(
        ["restore", *common, "--topic", pair.topic, "--as", view, "--from", begin,
         "--key-prefix", "a-", "--to-offset", "9", "-o", "json"]
    )  # fmt: skip
    assert code == 0
    assert json.loads(capsys.readouterr().out)["records"] == 3
    rows = rows_of(spark, pair.east, view)
    assert [bytes(row.key) for row in rows] == [b"a-3", b"a-5", b"a-7"]
    assert run_command(["restore", *common, "--topic", pair.topic, "--as", view]) == 3


def shortened(path):
    """Takes the last row out of a Parquet file; it stays a valid one for every reader."""
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)  # Hadoop's own, on local disks only
    table = pq.ParquetFile(path).read()
    pq.write_table(table.slice(0, table.num_rows - 1), path, use_deprecated_int96_timestamps=True)


def overwritten(path):
    """Damages the first page of a Parquet file; its size stays the same."""
    content = bytearray(path.read_bytes())
    content[4:200] = bytes(196)
    path.write_bytes(content)


def test_nothing_is_restored_from_an_archive_whose_files_are_not_as_archived(
    spark, pair, tmp_path, capsys
):
    pair.apply()
    write(pair.east, pair.topic, plain(500))
    folder = tmp_path / "archive"
    archiver(spark, pair, folder).round()
    (name,) = load_archive(Files(spark, str(folder))).files
    file, manifest = folder / name, folder / "_manifest" / manifest_name(2)
    intact, described = file.read_bytes(), manifest.read_text()
    command = ["restore", "-f", str(pair.file), "--cluster", "west", "--archive", str(folder),
               "--as", f"{pair.topic}.view"]  # fmt: skip

    def refused(*parts):
        capsys.readouterr()
        assert run_command(command) == 1
        said = capsys.readouterr().err
        for part in (file.name, *parts):
            assert part in said, said
        assert f"{pair.topic}.view" not in pair.west.admin().list_topics(timeout=20).topics
        file.write_bytes(intact)
        manifest.write_text(described)

    shortened(file)
    refused("bytes, its manifest says")
    shortened(file)
    manifest.write_text(
        described.replace(f'"bytes": {len(intact)}', f'"bytes": {file.stat().st_size}')
    )
    refused("holds 499 records, its manifest says 500")
    # A manifest of an earlier release does not count the records of a file.
    shortened(file)
    old = json.loads(described)
    old["files"] = [
        {name: one[name] for name in ("path", "topic", "date", "hour")}
        | {"bytes": file.stat().st_size}
        for one in old["files"]
    ]
    manifest.write_text(json.dumps(old))
    capsys.readouterr()
    assert run_command(command) == 1
    assert f"{pair.topic}/0 hold 499 records, the manifests say 500" in capsys.readouterr().err
    file.write_bytes(intact)
    manifest.write_text(described)
    overwritten(file)
    refused()
    extra = file.with_name("000000000002-00009.parquet")
    extra.write_bytes(intact)
    capsys.readouterr()
    assert run_command(command) == 1
    assert f"{extra.name} is in no manifest" in capsys.readouterr().err
    extra.unlink()
    file.unlink()
    refused("is missing")
    assert run_command(command) == 0
    assert "Restored 500 records" in capsys.readouterr().out


def test_a_restore_of_all_topics_goes_on_after_one_more_was_archived(spark, pair, tmp_path):
    pair.apply()
    write(pair.east, pair.topic, plain(20))
    folder = tmp_path / "archive"
    archiver(spark, pair, folder).round()
    wanted = RestoreRequest(pair.name, pair.plan.cluster("west"), Selection(()))
    assert restore(spark, str(folder), wanted)["records"] == 20
    second = f"{pair.topic}.b"
    pair.east.create_topic(second, partitions=1)
    write(pair.east, second, plain(5))
    both = Source(pair.plan.cluster("east"), str(pair.file), (pair.topic, second))
    Archiver(spark, both, str(folder), clock=SystemClock()).round()
    done = restore(spark, str(folder), wanted)
    assert (done["records"], done["skipped"]) == (5, 20)


def test_a_recreated_topic_is_not_mixed_with_the_old_one(spark, pair, tmp_path):
    pair.apply()
    write(pair.east, pair.topic, plain(10))
    folder = tmp_path / "archive"
    archiver(spark, pair, folder).round()
    wipe(pair.east, pair.topic, partitions=1)
    write(pair.east, pair.topic, plain(20))
    with pytest.raises(RefusedError, match="deleted and created again"):
        archiver(spark, pair, folder).round()


def test_an_interrupted_restore_goes_on_where_it_was(spark, pair, tmp_path):
    from replicator.errors import ReplicatorError
    from replicator.spark.restore.selection import restore_id
    from replicator.spark.restore.task import PartitionWriter, RestoreOrder

    pair.apply()
    write(pair.east, pair.topic, plain(100))
    folder = tmp_path / "archive"
    archiver(spark, pair, folder).round()
    wipe(pair.west, pair.topic, partitions=1)
    west = pair.plan.cluster("west")
    selection = Selection((pair.topic,), to_offset=40)
    done = restore(spark, str(folder), RestoreRequest(pair.name, west, selection))
    assert done["records"] == 40
    root = Files(spark, str(folder)).root
    order = RestoreOrder(
        topology=pair.name, restore=restore_id(root, "west", None, selection), target=west,
        alias="east", names={pair.topic: pair.topic}, max_message_bytes={pair.topic: 1_000_000},
    )  # fmt: skip
    # A zombie of the same restore: it had taken 30 more, and never committed them.
    zombie = PartitionWriter(order, pair.topic, 0)
    assert zombie.progress.next_offset == 40
    row = {"key": b"k", "value": b"z", "headers": None, "timestamp": NOW_MS}
    for offset in range(40, 70):
        zombie.take({**row, "offset": offset})
    owner = PartitionWriter(order, pair.topic, 0)
    assert owner.progress.next_offset == 40
    for offset in range(30, 45):
        owner.take({**row, "offset": offset})
    owner.commit()
    assert (owner.written, owner.skipped) == (5, 10)
    with pytest.raises(ReplicatorError):
        zombie.commit()
    owner.close()
    zombie.close()
    offsets = [int(row.headers[-1].value.split(b"/")[-1]) for row in
               rows_of(spark, pair.west, pair.topic)]  # fmt: skip
    assert offsets == list(range(45))
