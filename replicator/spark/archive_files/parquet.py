"""Archived records as Parquet: columns, folders, and how a DataFrame becomes files of a commit.

Columns are those of the data source; ``topic``, ``date`` and ``hour`` (of the record's timestamp, in
UTC) are folders. Rows of a file are ordered by partition and offset.
"""

import urllib.parse
from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from replicator.spark.archive_files.manifest import ArchivedFile
from replicator.spark.archive_files.store import DATA, STAGING
from replicator.spark.base.file_info import FileInfo
from replicator.spark.base.files import Files

FOLDERS = ("topic", "date", "hour")
NO_TIME = "none"
"""Folder of records without a timestamp."""

COLUMNS_DDL = (
    "key binary, value binary, partition int, offset bigint, timestamp timestamp, "
    "timestampType int, headers array<struct<key: string, value: binary>>, leaderEpoch int, "
    "topic string, date string, hour string"
)


def with_folders(records: DataFrame) -> DataFrame:
    """Adds ``date`` and ``hour``."""
    return records.withColumn(
        "date", f.coalesce(f.date_format("timestamp", "yyyy-MM-dd"), f.lit(NO_TIME))
    ).withColumn("hour", f.coalesce(f.date_format("timestamp", "HH"), f.lit(NO_TIME)))


def write_files(files: Files, records: DataFrame, number: int) -> list[ArchivedFile]:
    """Writes records with their folders, and puts the files where the commit will name them.

    A task that is tried again, or a job that is killed, leaves nothing that counts.
    """
    staging = files.path(STAGING, f"{number:012d}")
    files.delete(staging)
    records.sortWithinPartitions(*FOLDERS, "partition", "offset").write.partitionBy(
        *FOLDERS
    ).parquet(staging)
    written: list[ArchivedFile] = []
    for at, info in enumerate(each for each in files.list(staging) if _is_data(each)):
        topic, date, hour = _folders(info.path)
        inside = info.path.removeprefix(f"{staging}/").rpartition("/")[0]
        path = f"{DATA}/{inside}/{number:012d}-{at:05d}.parquet"
        files.move(info.path, files.path(path))
        written.append(ArchivedFile(path, topic, date, hour, info.bytes))
    files.delete(staging)
    return written


def read_files(session: SparkSession, files: Files, chosen: Sequence[ArchivedFile]) -> DataFrame:
    """The records of some files, with their folders as columns."""
    if not chosen:
        return session.createDataFrame([], COLUMNS_DDL)
    return (
        session.read.schema(COLUMNS_DDL)
        .option("basePath", files.path(DATA))
        .parquet(*(files.path(each.path) for each in chosen))
    )


def parquet_sizes(files: Files, topics: Sequence[str]) -> dict[str, int]:
    """Bytes of every Parquet file below some topics, by its path below the archive."""
    data = files.path(DATA)
    found: dict[str, int] = {}
    for folder in files.folders(data):
        if _folder_value(folder, "topic") in topics:
            found.update(
                {
                    each.path.removeprefix(f"{files.root}/"): each.bytes
                    for each in files.list(folder)
                    if _is_data(each)
                }
            )
    return found


def _folder_value(path: str, name: str) -> str:
    return urllib.parse.unquote(path.rpartition("/")[2].removeprefix(f"{name}="))


def _is_data(info: FileInfo) -> bool:
    return info.path.endswith(".parquet")


def _folders(path: str) -> tuple[str, str, str]:
    found = dict(part.split("=", 1) for part in path.split("/") if "=" in part)
    topic, date, hour = (urllib.parse.unquote(found[name]) for name in FOLDERS)
    return topic, date, hour
