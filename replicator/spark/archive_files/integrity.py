"""Are the files of an archive those that its manifest names? Checked before anything is restored.

The checksum of a file is over its rows and not over its bytes: the exclusive or of a 64-bit hash of
every row. So it stays the same when rows move into another file, and a compaction can be checked too.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from operator import xor

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from replicator.errors import ReplicatorError
from replicator.identifiers import TopicPartition
from replicator.spark.archive_files.manifest import Archive, ArchivedFile

_ROW = (
    "key",
    "value",
    "partition",
    "offset",
    "timestamp",
    "timestampType",
    "headers",
    "leaderEpoch",
)
_SHOWN = 10
_MASK = 2**64 - 1


class DamagedArchiveError(ReplicatorError):
    """Files of an archive are not what its manifest says; nothing was written from them."""


@dataclass(slots=True)
class FileRows:
    """What one file holds: records by partition, all of them and those that were asked for."""

    records: Counter[TopicPartition]
    selected: Counter[TopicPartition]
    checksum: int = 0


def read_rows(records: DataFrame, selected: Column | None = None) -> dict[str, FileRows]:
    """What each file holds, by its name, which is unique in an archive.

    Args:
        records: of ``read_files``.
        selected: which of them are asked for; all of them without it.
    """
    rows = records.groupBy(f.col("_metadata.file_name").alias("file"), "topic", "partition").agg(
        f.count("*").alias("records"),
        f.bit_xor(f.xxhash64(*_ROW)).alias("checksum"),
        f.count_if(f.lit(True) if selected is None else f.coalesce(selected, f.lit(False))).alias(
            "selected"
        ),
    )
    found: dict[str, FileRows] = {}
    for row in rows.collect():
        held = found.setdefault(row["file"], FileRows(Counter(), Counter()))
        key = row["topic"], row["partition"]
        held.records[key] += row["records"]
        held.selected[key] += row["selected"]
        held.checksum ^= row["checksum"]
    return found


def with_contents(
    files: Iterable[ArchivedFile], rows: Mapping[str, FileRows]
) -> list[ArchivedFile]:
    """The files as the manifest names them: with their records and checksums."""
    return [
        replace(file, records=held.records.total(), checksum=_text(held.checksum))
        for file in files
        for held in [rows[_name(file.path)]]
    ]


def listing_problems(
    archive: Archive, chosen: Iterable[ArchivedFile], sizes: Mapping[str, int]
) -> list[str]:
    """What the file system says: files that are missing, of another size, or in no manifest. Pure.

    Args:
        archive: what the manifests say.
        chosen: the files that are to be read.
        sizes: bytes of every Parquet file below the topics that are to be read, by path below the
            archive. Files of a commit that is not finished yet are passed over.
    """
    found: list[str] = []
    for file in chosen:
        size = sizes.get(file.path)
        if size is None:
            found.append(f"{file.path} is missing")
        elif size != file.bytes:
            found.append(f"{file.path} has {size:,} bytes, its manifest says {file.bytes:,}")
    found += [
        f"{path} is in no manifest"
        for path in sizes
        if path not in archive.files and not _unfinished(path, archive.number)
    ]
    return found


def content_problems(
    archive: Archive, chosen: Iterable[ArchivedFile], rows: Mapping[str, FileRows]
) -> list[str]:
    """What the rows say: files with other records than their manifest names. Pure.

    Manifests of earlier releases have no counts of files: then a partition is judged as a whole, where
    all files of its topic are read.
    """
    found: list[str] = []
    chosen = list(chosen)
    for file in chosen:
        held = rows.get(_name(file.path), FileRows(Counter(), Counter()))
        if file.records is None:
            continue
        if held.records.total() != file.records:
            found.append(
                f"{file.path} holds {held.records.total():,} records, its manifest says "
                f"{file.records:,}"
            )
        elif _text(held.checksum) != file.checksum:
            found.append(f"{file.path} holds other records than were archived (by its checksum)")
    return found or _partition_problems(archive, chosen, rows)


def require_intact(problems: list[str], *, root: str) -> None:
    """Ends a command that would read damaged files.

    Raises:
        DamagedArchiveError: there are problems; names the first of them.
    """
    if problems:
        more = f"; and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
        raise DamagedArchiveError(
            f"the archive is damaged, and nothing was written: {'; '.join(problems[:_SHOWN])}{more}",
            subject=root,
            remedy="Bring these files back from a copy, or move away those that do not belong there.",
        )


def same_rows(before: Iterable[ArchivedFile], after: Iterable[ArchivedFile]) -> bool:
    """Whether files hold the same records together; where no manifest counted them, it says yes."""
    old, new = list(before), list(after)
    if any(file.records is None for file in old):
        return True
    return _sums(old) == _sums(new)


def _sums(files: Iterable[ArchivedFile]) -> tuple[int, int]:
    listed = list(files)
    return (
        sum(file.records or 0 for file in listed),
        reduce(xor, (int(file.checksum, 16) for file in listed), 0),
    )


def _partition_problems(
    archive: Archive, chosen: Iterable[ArchivedFile], rows: Mapping[str, FileRows]
) -> list[str]:
    """Counts of whole partitions, of topics whose files are all read and not all counted."""
    read = {file.path for file in chosen}
    uncounted = {
        file.topic for file in archive.files.values() if file.records is None and file.path in read
    }
    partial = {file.topic for file in archive.files.values() if file.path not in read}
    held: Counter[TopicPartition] = Counter()
    for one in rows.values():
        held.update(one.records)
    return [
        f"files of {topic}/{partition} hold {held[topic, partition]:,} records, the manifests say "
        f"{records:,}"
        for (topic, partition), records in sorted(archive.records.items())
        if topic in uncounted - partial and held[topic, partition] != records
    ]


def _unfinished(path: str, number: int) -> bool:
    """Whether a file is of a commit that comes after this one: another command is writing it."""
    written = _name(path).partition("-")[0]
    return written.isdecimal() and int(written) > number


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _text(checksum: int) -> str:
    return f"{checksum & _MASK:016x}"
