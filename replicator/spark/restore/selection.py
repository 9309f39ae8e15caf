"""What is restored where: pure. And where a restore has got to, as it is stored on the target.

Progress stands in a compacted topic of the target, written in the transaction of the records it
accounts for. So a restore that was killed goes on exactly where it was, and the same command given
again does nothing.
"""

import hashlib
import zlib
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from replicator.errors import InputError, StoredFormatError
from replicator.kafka.clients.wire_json import decode_value, encode_key, encode_value
from replicator.spark.archive_files.manifest import Archive, ArchivedFile

VERSION = 1
PROGRESS_PARTITIONS = 16
_HOUR_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class Selection:
    """Which archived records; everything given must hold.

    Attributes:
        topics: archived topics.
        from_ms: timestamps from here on.
        to_ms: timestamps before this.
        partition: one partition only.
        from_offset: archived offsets from here on.
        to_offset: archived offsets before this.
        key_prefix: keys that begin so.
    """

    topics: tuple[str, ...]
    from_ms: int | None = None
    to_ms: int | None = None
    partition: int | None = None
    from_offset: int | None = None
    to_offset: int | None = None
    key_prefix: bytes | None = None

    def words(self) -> str:
        """The selection as text: two that select the same have the same."""
        return repr(self)


@dataclass(frozen=True, slots=True)
class RestoreProgress:
    """One partition of a restore: archived offsets below ``next_offset`` are on the target.

    ``target_id`` is the id of the target's topic: one that was created again since holds none of them.
    """

    restore: str
    topic: str
    partition: int
    next_offset: int = 0
    records: int = 0
    target_id: str = ""

    def encode(self) -> tuple[bytes, bytes]:
        """Key and value on the wire."""
        value = encode_value(
            {
                "v": VERSION, "nextOffset": self.next_offset, "records": self.records,
                "targetId": self.target_id,
            }
        )  # fmt: skip
        return progress_key(self.restore, self.topic, self.partition), value or b""


def progress_key(restore: str, topic: str, partition: int) -> bytes:
    """The key of a partition's progress."""
    return encode_key(
        {
            "kind": "restore", "v": VERSION, "restore": restore, "topic": topic,
            "partition": partition,
        }
    )  # fmt: skip


def decode_progress(
    restore: str, topic: str, partition: int, value: bytes | None
) -> RestoreProgress:
    """Reads stored progress; the beginning where there is none.

    Raises:
        StoredFormatError: an unknown version, or not ours.
    """
    if value is None:
        return RestoreProgress(restore, topic, partition)
    try:
        found = decode_value(value)
        if found["v"] != VERSION:
            raise StoredFormatError(
                f"progress of a restore has version {found['v']}, this release reads {VERSION}",
                remedy="Run the release that wrote it, or a newer one.",
            )
        return RestoreProgress(
            restore, topic, partition, int(found["nextOffset"]), int(found["records"]),
            str(found.get("targetId", "")),
        )  # fmt: skip
    except (KeyError, TypeError, ValueError) as error:
        raise StoredFormatError(
            f"progress of a restore cannot be read ({error})",
            remedy="Something else wrote into the topic of restores; nothing was guessed.",
        ) from error


def progress_partition(topic: str, partition: int) -> int:
    """Where the progress of a partition stands."""
    return zlib.crc32(f"{topic}/{partition}".encode()) % PROGRESS_PARTITIONS


def restore_id(archive: str, target: str, rename: str | None, selection: Selection) -> str:
    """A short id: the same restore, given again, has the same, so that it goes on or does nothing."""
    text = f"{archive} {target} {rename or ''} {selection.words()}"
    return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()


def chosen_files(archive: Archive, selection: Selection) -> list[ArchivedFile]:
    """The files that may hold selected records, by topic and hour."""
    return [
        file
        for file in sorted(archive.files.values(), key=lambda each: each.path)
        if file.topic in selection.topics and _in_time(file, selection)
    ]


def partitions_of(archive: Archive, selection: Selection) -> list[tuple[str, int]]:
    """The archived partitions that are restored."""
    return sorted(
        key
        for key in archive.ends
        if key[0] in selection.topics and selection.partition in {None, key[1]}
    )


def checked_selection(archive: Archive, selection: Selection, rename: str | None) -> Selection:
    """The selection with its topics: those that were asked for, else all of the archive.

    Raises:
        InputError: the archive lacks a topic, or several topics would get one name.
    """
    missing = sorted(set(selection.topics) - {topic for topic, _ in archive.ends})
    if missing:
        raise InputError(
            f"the archive has no topic {', '.join(missing)}",
            remedy=f"It has {', '.join(sorted(archive.topics)) or 'none'}.",
        )
    found = replace(selection, topics=selection.topics or tuple(sorted(archive.topics)))
    if rename is not None and len(found.topics) != 1:
        raise InputError(
            "--as names one topic, and several are restored", remedy="Choose one with --topic."
        )
    return found


def _in_time(file: ArchivedFile, selection: Selection) -> bool:
    try:
        begins = datetime.fromisoformat(f"{file.date}T{file.hour}:00:00").replace(tzinfo=UTC)
    except ValueError:
        return True  # no time, or one that no calendar has: its records are looked at one by one
    begins_ms = round(begins.timestamp() * 1000)
    if selection.from_ms is not None and begins_ms + _HOUR_MS <= selection.from_ms:
        return False
    return selection.to_ms is None or begins_ms < selection.to_ms
