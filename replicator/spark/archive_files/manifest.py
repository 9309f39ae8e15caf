"""The manifest of an archive: one small JSON file per commit, and what they say together. Pure.

A Parquet file counts when a manifest names it and no later one replaces it. Anything else below the
archive is what a killed command left behind, and is deleted by the next one. So a record that was
written is in the archive exactly once, however often a command is killed.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from replicator.errors import StoredFormatError
from replicator.identifiers import TopicPartition

VERSION = 1
FOLDER = "_manifest"


@dataclass(frozen=True, slots=True)
class ArchivedRange:
    """Source offsets that a commit covers, half open, and how many records they held."""

    topic: str
    partition: int
    start: int
    end: int
    records: int


@dataclass(frozen=True, slots=True)
class ArchivedFile:
    """One Parquet file, by its path below the archive.

    ``records`` and ``checksum`` (see ``integrity``) are unknown in manifests of earlier releases.
    """

    path: str
    topic: str
    date: str
    hour: str
    bytes: int
    records: int | None = None
    checksum: str = ""


@dataclass(frozen=True, slots=True)
class Lost:
    """Source offsets that retention took before they were archived."""

    topic: str
    partition: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class ArchivedTopic:
    """What a topic looked like: enough to make it again."""

    name: str
    id: str
    partitions: int
    configs: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit; ``replaces`` are paths that no longer count.

    ``kind`` is ``append``, ``compaction``, or ``opened``: a command has begun to write, and none that
    began before it can commit any more, because the number it would take is taken.
    """

    number: int
    kind: str
    at_ms: int
    cluster: str
    cluster_id: str
    ranges: tuple[ArchivedRange, ...] = ()
    files: tuple[ArchivedFile, ...] = ()
    replaces: tuple[str, ...] = ()
    lost: tuple[Lost, ...] = ()
    topics: tuple[ArchivedTopic, ...] = ()

    def to_json(self) -> str:
        """The text of its manifest file."""
        return json.dumps({"v": VERSION, **asdict(self)}, indent=1, sort_keys=True)


@dataclass(slots=True)
class Archive:
    """What all commits say together."""

    number: int = 0
    cluster: str = ""
    cluster_id: str = ""
    ends: dict[TopicPartition, int] = field(default_factory=dict)
    starts: dict[TopicPartition, int] = field(default_factory=dict)
    records: dict[TopicPartition, int] = field(default_factory=dict)
    files: dict[str, ArchivedFile] = field(default_factory=dict)
    topics: dict[str, ArchivedTopic] = field(default_factory=dict)
    lost: list[Lost] = field(default_factory=list)

    def take(self, commit: Commit) -> None:
        """The archive after one more commit."""
        self.number = commit.number
        self.cluster, self.cluster_id = commit.cluster, commit.cluster_id
        for done in commit.ranges:
            key = done.topic, done.partition
            self.starts.setdefault(key, done.start)
            self.ends[key] = done.end
            self.records[key] = self.records.get(key, 0) + done.records
        self.topics.update({topic.name: topic for topic in commit.topics})
        for gone in commit.lost:
            # Reported once: the next round begins behind it, even if nothing was left to read.
            key = gone.topic, gone.partition
            self.ends[key] = max(self.ends.get(key, 0), gone.end)
        self.lost.extend(commit.lost)
        for path in commit.replaces:
            self.files.pop(path, None)
        self.files.update({file.path: file for file in commit.files})


def manifest_name(number: int) -> str:
    """File name of a commit; names sort in the order of commits."""
    return f"{number:012d}.json"


def folded(commits: Iterable[Commit], onto: Archive | None = None) -> Archive:
    """The archive after all commits, in order; ``onto`` is what it was before them."""
    archive = Archive() if onto is None else onto
    for commit in sorted(commits, key=lambda each: each.number):
        archive.take(commit)
    return archive


def parse_commit(text: str, *, path: str) -> Commit:
    """Reads one manifest file.

    Raises:
        StoredFormatError: an unknown version, or not ours.
    """
    try:
        found: dict[str, Any] = json.loads(text)
        check_version(found.pop("v"), path=path)
        return Commit(
            **{
                **found,
                "ranges": tuple(ArchivedRange(**each) for each in found["ranges"]),
                "files": tuple(ArchivedFile(**each) for each in found["files"]),
                "lost": tuple(Lost(**each) for each in found["lost"]),
                "topics": tuple(ArchivedTopic(**each) for each in found["topics"]),
                "replaces": tuple(found["replaces"]),
            }
        )
    except (KeyError, TypeError, ValueError) as error:
        raise unreadable(path, error) from error


def check_version(version: object, *, path: str) -> None:
    """Refuses what another release wrote.

    Raises:
        StoredFormatError: it is not the version of this release.
    """
    if version != VERSION:
        raise StoredFormatError(
            f"a manifest has version {version}, this release reads {VERSION}",
            subject=path,
            remedy="Run the release that wrote it, or a newer one.",
        )


def unreadable(path: str, error: Exception) -> StoredFormatError:
    """The error for a manifest that cannot be parsed."""
    return StoredFormatError(
        f"a manifest cannot be read ({error})",
        subject=path,
        remedy="Something else wrote into the archive; nothing was guessed.",
    )
