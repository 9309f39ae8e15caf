"""``archive``: rounds of reading what is new and committing it; and the compaction of small files."""

import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession

from replicator.clock import Clock
from replicator.errors import (
    InputError,
    NotFoundError,
    RefusedError,
    ReplicatorError,
    SourceDataLostError,
)
from replicator.identifiers import JsonObject, TopicPartition
from replicator.spark.archive.rounds import Round, decide_round, first_part, together, up_to
from replicator.spark.archive.source import Source
from replicator.spark.archive_files.delta import FOLDER as DELTA_LOG
from replicator.spark.archive_files.delta import DeltaLog
from replicator.spark.archive_files.integrity import (
    DamagedArchiveError,
    FileRows,
    read_rows,
    same_rows,
    with_contents,
)
from replicator.spark.archive_files.manifest import (
    ArchivedFile,
    ArchivedRange,
    ArchivedTopic,
    Commit,
)
from replicator.spark.archive_files.parquet import read_files, with_folders, write_files
from replicator.spark.archive_files.store import commit, load_archive, open_archive, sum_up, sweep
from replicator.spark.archive_files.summary import COMMITS
from replicator.spark.base.amounts import Amount, kafka_amount
from replicator.spark.base.failures import spark_failures
from replicator.spark.base.files import Files
from replicator.spark.base.progress import progress
from replicator.spark.base.ranges import Range
from replicator.spark.source.data_source import FORMAT
from replicator.spark.source.planning import read_bounds
from replicator.wire.requests.log_dirs import sizes_on_disk

_LOOKS = 3
"""How often a round reads the log bounds again because retention deleted what it was about to read."""
RECORDS_PER_COMMIT = 10_000_000
"""So many offsets are read before they are committed: what a killed command has to read again."""
FILES_PER_HOUR = 8
"""More files than this in one hour of a topic are made one."""


class Archiver:
    """Writes one archive; only one at a time may."""

    def __init__(
        self, session: SparkSession, source: Source, folder: str, *, clock: Clock,
        most_per_commit: int = RECORDS_PER_COMMIT, as_delta: bool | None = None,
    ) -> None:  # fmt: skip
        """Opens the archive, which ends any earlier command, and deletes what killed ones left behind.

        ``as_delta`` makes it a Delta table too; None leaves it as it is.

        Raises:
            RefusedError: the archive is of another cluster.
            InputError: the folder cannot be used.
            AlreadyExistsError: other commands open the archive at the same time.
        """
        self._session = session
        self._most_per_commit = most_per_commit
        self._source = source
        self._clock = clock
        self._files = Files(session, folder)
        held = load_archive(self._files)
        with self._source.admin() as admin:
            self._cluster_id = admin.cluster_id()
        if held.cluster_id not in {"", self._cluster_id}:
            raise RefusedError(
                f"the archive is of cluster '{held.cluster}' ({held.cluster_id}), not of "
                f"{source.cluster.alias} ({self._cluster_id})",
                subject=self._files.root,
                remedy="Give each cluster an archive of its own.",
            )
        self._archive = open_archive(
            self._files, cluster=source.cluster.alias, cluster_id=self._cluster_id,
            at_ms=self._now_ms(),
        )  # fmt: skip
        self._delta = self._delta_log(as_delta)
        self._tell_delta()
        self.swept = sweep(self._files, self._archive)
        self._sum_up_at = self._archive.number + COMMITS
        self._spans: dict[TopicPartition, int] = {}

    def round(self) -> JsonObject:
        """Archives what is there now and not archived yet, in commits of so many records at most.

        Each commit counts by itself: a round that is killed is continued behind its last one.

        Returns:
            ``{"commit", "commits", "records", "files", "bytes", "topics", "lost"}``; commit is the last one,
            and null when there was nothing new.

        Raises:
            RefusedError: a topic was created again, so its offsets mean other records now.
            ReplicatorError: the cluster or the file system cannot be used.
        """
        ends: dict[TopicPartition, int] = {}
        parts = [self._part(ends)]
        while parts[-1]["more"]:
            parts.append(self._part(ends))
        return together(parts)

    def _part(self, ends: dict[TopicPartition, int]) -> JsonObject:
        for _ in range(_LOOKS - 1):
            try:
                with spark_failures():
                    return self._committed_part(ends)
            except ReplicatorError as error:
                if error.code != SourceDataLostError.code:
                    raise
                # Retention deleted what was being read: the next look records that in the manifest.
        return self._committed_part(ends)

    def _committed_part(self, ends: dict[TopicPartition, int]) -> JsonObject:
        """One commit; ``ends`` are those of the round, filled in by its first part."""
        taken, topics = self._look()
        if taken.recreated:
            names = ", ".join(sorted({topic for topic, _ in taken.recreated}))
            raise RefusedError(
                f"deleted and created again since they were archived: {names}",
                subject=self._files.root,
                remedy="Archive them into another folder; this one keeps what they were.",
            )
        if not ends:
            ends.update({(each.topic, each.partition): each.end for each in taken.ranges})
        left = up_to(taken.ranges, ends)
        taken = replace(taken, ranges=first_part(left, self._most_per_commit))
        if not taken.ranges and not taken.lost:
            return {
                "more": False, "commit": None, "records": 0, "files": 0, "bytes": 0,
                "topics": [topic.name for topic in topics], "lost": [],
            }  # fmt: skip
        number = self._archive.number + 1
        whole = kafka_amount(taken.ranges, self._sizes(taken.ranges), self._spans)
        with progress(self._session, "Archiving", whole=whole):
            written = (
                write_files(self._files, with_folders(self._read(taken.ranges)), number)
                if taken.ranges
                else []
            )
        made = Amount(whole.records, sum(each.bytes for each in written))
        with progress(self._session, "Checking what was written", whole=made):
            rows = self._rows(written)
            written = with_contents(written, rows)
            counts: Counter[TopicPartition] = sum(
                (each.records for each in rows.values()), Counter()
            )
        ranges = tuple(
            ArchivedRange(
                each.topic, each.partition, each.start, each.end,
                counts[each.topic, each.partition],
            )
            for each in taken.ranges
        )  # fmt: skip
        self._commit(
            Commit(
                number=number, kind="append", at_ms=self._now_ms(),
                cluster=self._source.cluster.alias, cluster_id=self._cluster_id,
                ranges=ranges, files=tuple(written), lost=taken.lost, topics=tuple(topics),
            )
        )  # fmt: skip
        return {
            "more": taken.ranges != left,
            "commit": number,
            "records": sum(each.records for each in ranges),
            "files": len(written),
            "bytes": sum(each.bytes for each in written),
            "topics": [topic.name for topic in topics],
            "lost": [
                {"topic": each.topic, "partition": each.partition, "from": each.start,
                 "to": each.end}
                for each in taken.lost
            ],
        }  # fmt: skip

    def compact(self, *, most_files: int = FILES_PER_HOUR) -> JsonObject:
        """Makes one file of each hour of a topic that has more than so many.

        Returns:
            ``{"commit", "before", "after"}``: how many files the hours had and have.
        """
        hours: dict[tuple[str, str, str], list[ArchivedFile]] = defaultdict(list)
        for file in self._archive.files.values():
            hours[file.topic, file.date, file.hour].append(file)
        old = [file for found in hours.values() if len(found) > most_files for file in found]
        if not old:
            return {"commit": None, "before": 0, "after": 0}
        number = self._archive.number + 1
        with progress(self._session, "Compacting"):
            records = read_files(self._session, self._files, old)
            whole = records.repartition("topic", "date", "hour")
            written = write_files(self._files, whole, number)
            written = with_contents(written, self._rows(written))
        if not same_rows(old, written):
            raise DamagedArchiveError(
                "files that were to be merged do not hold what their manifests say",
                subject=self._files.root,
                remedy="'replicator restore' names them; nothing was replaced.",
            )
        self._commit(
            Commit(
                number=number, kind="compaction", at_ms=self._now_ms(),
                cluster=self._archive.cluster, cluster_id=self._archive.cluster_id,
                files=tuple(written), replaces=tuple(file.path for file in old),
            )
        )  # fmt: skip
        return {"commit": number, "before": len(old), "after": len(written)}

    def tidy_round(self) -> JsonObject:
        """One round of many: hours with many files are compacted first."""
        self.compact()
        return self.round()

    def _look(self) -> tuple[Round, list[ArchivedTopic]]:
        with self._source.admin() as admin:
            there = admin.topic_partitions()
            names = [name for name in there if self._source.selects(name)]
            missing = self._source.missing(there)
            if missing:
                raise NotFoundError(
                    f"no such topic: {', '.join(missing)}",
                    subject=f"cluster:{self._source.cluster.alias}",
                    remedy="Check the names given with --topic.",
                )
            described = admin.describe_topics(names)
            configs = admin.topic_configs(names)
            keys: list[TopicPartition] = [
                (name, number) for name in names for number in range(there[name])
            ]
            bounds = read_bounds(admin, keys, "read_committed")
        self._spans = {key: bounds.latest[key] - bounds.earliest[key] for key in bounds.latest}
        topics = [
            ArchivedTopic(
                name=name,
                id=described[name].topic_id,
                partitions=there[name],
                configs={
                    setting: value.value
                    for setting, value in configs.get(name, {}).items()
                    if value.value is not None
                    and not (value.is_default or value.sensitive or value.read_only)
                },
            )
            for name in names
            if name in described
        ]
        ids = {topic.name: topic.id for topic in topics}
        return decide_round(self._archive, bounds.earliest, bounds.latest, ids), topics

    def _read(self, ranges: Sequence[Range]) -> DataFrame:
        def json_of(end: str) -> str:
            found: dict[str, dict[str, int]] = defaultdict(dict)
            for each in ranges:
                found[each.topic][str(each.partition)] = getattr(each, end)
            return json.dumps(found)

        assigned: dict[str, list[int]] = defaultdict(list)
        for each in ranges:
            assigned[each.topic].append(each.partition)
        return (
            self._session.read.format(FORMAT)
            .option("topology", self._source.topology_file)
            .option("cluster", self._source.cluster.alias)
            .option("assign", json.dumps(assigned))
            .option("startingOffsets", json_of("start"))
            .option("endingOffsets", json_of("end"))
            .load()
        )

    def _sizes(self, ranges: Sequence[Range]) -> dict[TopicPartition, int]:
        return sizes_on_disk(self._source.cluster, {each.topic for each in ranges})

    def _rows(self, written: Sequence[ArchivedFile]) -> dict[str, FileRows]:
        return read_rows(read_files(self._session, self._files, written)) if written else {}

    def _commit(self, made: Commit) -> None:
        def counted() -> None:
            self._archive.take(made)
            self._tell_delta()

        commit(self._files, made, counted=counted)
        if self._archive.number >= self._sum_up_at:
            sum_up(self._files, self._archive)
            self._sum_up_at = self._archive.number + COMMITS

    def _delta_log(self, wanted: bool | None) -> DeltaLog | None:
        there = self._files.exists(self._files.path(DELTA_LOG))
        if there and wanted is False:
            raise InputError(
                "the archive is a Delta table, which would no longer be kept up to date",
                subject=self._files.root,
                remedy=f"Leave --format away, or delete its folder {DELTA_LOG} first.",
            )
        if not there and not wanted:
            return None
        log = DeltaLog(self._files.root, dict(self._session.sparkContext.getConf().getAll()))
        log.create()
        return log

    def _tell_delta(self) -> None:
        if self._delta is not None:
            self._delta.bring_up_to(self._archive, at_ms=self._now_ms())

    def _now_ms(self) -> int:
        return round(self._clock.now() * 1000)
