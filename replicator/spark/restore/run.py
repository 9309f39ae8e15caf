"""``restore``: archived records back into topics, in order, exactly once, resumable."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from replicator.clock import SystemClock
from replicator.errors import RefusedError, UnreachableError
from replicator.identifiers import JsonObject, TopicPartition, restores_topic
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.kafka.admin.topics import NewTopicSpec
from replicator.kafka.logs.compacted_read import read_compacted
from replicator.kafka.logs.compacted_topic import ensure_compacted_topic
from replicator.kafka.logs.log_writer import LogWriter
from replicator.spark.archive_files.integrity import (
    DamagedArchiveError,
    content_problems,
    listing_problems,
    read_rows,
    require_intact,
)
from replicator.spark.archive_files.manifest import Archive
from replicator.spark.archive_files.parquet import parquet_sizes, read_files
from replicator.spark.archive_files.store import require_archive
from replicator.spark.base.amounts import Amount
from replicator.spark.base.failures import task_errors
from replicator.spark.base.files import Files
from replicator.spark.base.progress import progress
from replicator.spark.restore.progress import restored_so_far
from replicator.spark.restore.selection import (
    PROGRESS_PARTITIONS,
    RestoreProgress,
    Selection,
    checked_selection,
    chosen_files,
    decode_progress,
    partitions_of,
    progress_key,
    progress_partition,
    restore_id,
)
from replicator.spark.restore.task import CLIENT_ID, DONE_DDL, RestoreOrder, restore_rows
from replicator.topology.plan import ClusterPlan

TIMEOUT_SECONDS = 30.0
HEADROOM_BYTES = 1_024
"""Room for the provenance header, over the limit the archived topic had."""
_REPLICAS = 3
_SEEN_SECONDS = 0.1
_LOOKS = 2


@dataclass(frozen=True, slots=True)
class RestoreRequest:
    """What is restored into which cluster.

    Attributes:
        topology: name of the topology, part of the names of what is stored.
        target: the cluster to write to.
        selection: which archived records; no topics means all of them.
        rename: the name of the topic on the target, where one topic is restored under another.
        append: write behind records that are there already.
    """

    topology: str
    target: ClusterPlan
    selection: Selection
    rename: str | None = None
    append: bool = False


def restore(session: SparkSession, folder: str, wanted: RestoreRequest) -> JsonObject:
    """Restores what is wanted; ``{"restore", "records", "skipped", "bytes", "topics"}``.

    ``bytes`` are those of the archive's files that were read.

    Records that an earlier, interrupted run of the same restore wrote are counted as skipped.

    Raises:
        InputError: there is no archive, or it does not hold a topic that was asked for.
        RefusedError: a topic of the target has records that this restore did not write.
        DamagedArchiveError: files of the archive are not what its manifest says.
        ReplicatorError: the target or the file system cannot be used.
    """
    files = Files(session, folder)
    archive = require_archive(files)
    selection = checked_selection(archive, wanted.selection, wanted.rename)
    # As it was asked for: a restore of all topics goes on when one more was archived meanwhile.
    restored = restore_id(files.root, str(wanted.target.alias), wanted.rename, wanted.selection)
    names = {topic: wanted.rename or topic for topic in selection.topics}
    size = sum(file.bytes for file in chosen_files(archive, selection))
    held = Amount(_archived(archive, selection), size)
    with progress(session, "Checking the archive", whole=held):
        chosen, expected = _intact(session, files, archive, selection)
    with ClusterAdmin(wanted.target, client_id=CLIENT_ID, timeout_seconds=TIMEOUT_SECONDS) as admin:
        ensure_compacted_topic(
            admin, restores_topic(wanted.topology), partitions=PROGRESS_PARTITIONS
        )
        _prepare(admin, archive, names)
        order = RestoreOrder(
            topology=wanted.topology,
            restore=restored,
            target=wanted.target,
            alias=archive.cluster,
            names=names,
            max_message_bytes=_limits(admin, names),
        )
        _claim(admin, order, partitions_of(archive, selection), append=wanted.append)
    partitions = partitions_of(archive, selection)
    tasks = max(1, len(partitions))
    whole = Amount(expected.total(), size)
    with progress(
        session, "Restoring", whole=whole, reached=restored_so_far(order, partitions, whole)
    ):
        done = _written(_selected(chosen, selection), order, tasks)
    restored_rows = Counter(
        {(row["topic"], row["partition"]): row["records"] + row["skipped"] for row in done}
    )
    if restored_rows != expected:
        raise DamagedArchiveError(
            f"{restored_rows.total():,} of {expected.total():,} records were restored: files of the "
            "archive changed meanwhile",
            subject=files.root,
            remedy="Bring its files back from a copy, and run the same command again.",
        )
    return {
        "restore": restored,
        "cluster": str(wanted.target.alias),
        "records": sum(row["records"] for row in done),
        "skipped": sum(row["skipped"] for row in done),
        "bytes": size,
        "topics": [
            {
                "topic": row["topic"], "target": names[row["topic"]],
                "partition": row["partition"], "records": row["records"],
                "skipped": row["skipped"],
            }
            for row in sorted(done, key=lambda row: (row["topic"], row["partition"]))
        ],
    }  # fmt: skip


def _archived(archive: Archive, selection: Selection) -> int:
    """How many records the files hold that are looked at; 0 where an earlier release did not count them."""
    return sum(each.records or 0 for each in chosen_files(archive, selection))


def _intact(
    session: SparkSession, files: Files, archive: Archive, selection: Selection
) -> tuple[DataFrame, Counter[TopicPartition]]:
    """The records of all files that may hold selected ones, and how many of these there are.

    Raises:
        DamagedArchiveError: a file is missing, damaged, short, or in no manifest.
    """
    problems: list[str] = []
    for _ in range(_LOOKS):
        chosen = chosen_files(archive, selection)
        problems = listing_problems(archive, chosen, parquet_sizes(files, selection.topics))
        if not problems:
            break
        archive = require_archive(files)  # a compaction may have replaced files meanwhile
    require_intact(problems, root=files.root)
    records = read_files(session, files, chosen)
    if not chosen:
        return records, Counter()
    rows = read_rows(records, _matches(selection))
    require_intact(content_problems(archive, chosen, rows), root=files.root)
    return records, sum((each.selected for each in rows.values()), Counter())


def _prepare(admin: ClusterAdmin, archive: Archive, names: Mapping[str, str]) -> None:
    """Topics of the target: made where they are missing, refused where they do not fit."""
    there = admin.topic_partitions()
    brokers = len(admin.describe_cluster().brokers)
    missing = [
        NewTopicSpec(
            name=target,
            partitions=archive.topics[topic].partitions,
            replication_factor=min(_REPLICAS, brokers),
            configs=tuple(sorted(_configs(archive, topic).items())),
        )
        for topic, target in names.items()
        if target not in there
    ]
    for failure in admin.create_topics(missing).values():
        if failure is not None:
            raise failure
    small = [
        f"{target} has {there[target]} partitions, {archive.topics[topic].partitions} were archived"
        for topic, target in names.items()
        if target in there and there[target] < archive.topics[topic].partitions
    ]
    if small:
        raise RefusedError(
            "; ".join(small),
            subject=f"cluster:{admin.cluster.alias}",
            remedy="Add partitions, or restore under another name with --as.",
        )


def _configs(archive: Archive, topic: str) -> dict[str, str]:
    configs = dict(archive.topics[topic].configs)
    # Brokers must not refuse old records for their age, nor stamp them anew.
    configs["message.timestamp.type"] = "CreateTime"
    if "max.message.bytes" in configs:
        configs["max.message.bytes"] = str(int(configs["max.message.bytes"]) + HEADROOM_BYTES)
    return configs


def _claim(
    admin: ClusterAdmin,
    order: RestoreOrder,
    partitions: list[tuple[str, int]],
    *,
    append: bool,
) -> None:
    """Marks the partitions as this restore's own, before the first record is written.

    What it leaves in them when it is killed is then told apart from records of others, which are
    never written behind unless that was asked for. What it had written into a topic that was deleted
    since is gone: in the new one it begins anew.
    """
    ids = _topic_ids(admin, order.names)
    topic = restores_topic(order.topology)
    stored = read_compacted(
        order.target, topic, range(PROGRESS_PARTITIONS), client_id=CLIENT_ID,
        timeout_seconds=TIMEOUT_SECONDS, past_open_transactions=True, known_to_exist=True,
    )  # fmt: skip
    begun: list[tuple[str, int]] = []
    for key in partitions:
        value = stored[progress_partition(*key)].get(progress_key(order.restore, *key))
        held = decode_progress(order.restore, *key, value)
        if value is not None and held.target_id in {"", ids[key[0]]}:
            begun.append(key)
    new = [key for key in partitions if key not in begun]
    if not append:
        _refuse_held(admin, order, new)
    with LogWriter(order.target, topic, client_id=CLIENT_ID) as writer:
        for key in new:
            claim = RestoreProgress(order.restore, *key, target_id=ids[key[0]])
            writer.write([claim.encode()], partition=progress_partition(*key))


def _topic_ids(admin: ClusterAdmin, names: Mapping[str, str]) -> dict[str, str]:
    """The ids of the target's topics, by the archived name; a new one is waited for.

    Raises:
        UnreachableError: one of them cannot be seen for too long.
    """
    clock = SystemClock()
    deadline = clock.monotonic() + TIMEOUT_SECONDS
    while True:
        described = admin.describe_topics(names.values())
        unseen = [name for name in names.values() if name not in described]
        if not unseen:
            return {topic: described[name].topic_id for topic, name in names.items()}
        if clock.monotonic() > deadline:
            raise UnreachableError(
                f"topics were created and cannot be seen: {', '.join(unseen[:5])}",
                subject=f"cluster:{admin.cluster.alias}",
                remedy="Check that its brokers hear their controller, then run it again.",
            )
        clock.sleep(_SEEN_SECONDS)  # brokers learn of a new topic some moments after its creation


def _refuse_held(admin: ClusterAdmin, order: RestoreOrder, new: list[tuple[str, int]]) -> None:
    keys = [(order.names[topic], number) for topic, number in new]
    starts, ends = admin.every_offset(keys, "earliest"), admin.every_offset(keys, "latest")
    held = [f"{topic}/{number}" for topic, number in keys
            if starts[topic, number] != ends[topic, number]]  # fmt: skip
    if held:
        raise RefusedError(
            f"there are records already in {', '.join(held[:10])}",
            subject=f"cluster:{order.target.alias}",
            remedy="Empty the topic, restore under another name with --as, or add --append.",
        )


def _limits(admin: ClusterAdmin, names: Mapping[str, str]) -> dict[str, int]:
    configs = admin.topic_configs(names.values())
    found: dict[str, int] = {}
    for topic, target in names.items():
        value = configs.get(target, {}).get("max.message.bytes")
        found[topic] = int(value.value) if value is not None and value.value else 1_048_588
    return found


def _matches(selection: Selection) -> Column:
    at = f.unix_millis("timestamp")
    found = f.lit(True)
    if selection.from_ms is not None:
        found &= at >= selection.from_ms
    if selection.to_ms is not None:
        found &= at < selection.to_ms
    if selection.partition is not None:
        found &= f.col("partition") == selection.partition
    if selection.from_offset is not None:
        found &= f.col("offset") >= selection.from_offset
    if selection.to_offset is not None:
        found &= f.col("offset") < selection.to_offset
    if selection.key_prefix is not None:
        prefix = bytearray(selection.key_prefix)
        found &= f.substring("key", 1, len(prefix)) == f.lit(prefix)
    return found


def _selected(records: DataFrame, selection: Selection) -> DataFrame:
    return records.filter(_matches(selection)).select(
        "topic", "partition", "offset", "key", "value",
        f.unix_millis("timestamp").alias("timestamp"), "headers",
    )  # fmt: skip


def _written(records: DataFrame, order: RestoreOrder, tasks: int) -> list[dict[str, Any]]:
    """Every partition in one task, in the order of its offsets."""

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with task_errors():
            yield from restore_rows(order, batches)

    ordered = records.repartition(tasks, "topic", "partition").sortWithinPartitions(
        "topic", "partition", "offset"
    )
    return [row.asDict() for row in ordered.mapInArrow(write, DONE_DDL).collect()]
