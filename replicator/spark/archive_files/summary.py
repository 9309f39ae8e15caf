"""A summary: one file that stands for every commit up to its number. Pure.

A command that archives every minute makes half a million commits a year, and every reader would read
each of them. So the writer sums them up every 200 commits, and deletes what the summary holds.
"""

import json
from dataclasses import asdict
from typing import Any

from replicator.spark.archive_files.manifest import (
    VERSION,
    Archive,
    ArchivedFile,
    ArchivedTopic,
    Lost,
    check_version,
    unreadable,
)
from replicator.spark.base.ranges import keyed_offsets, offsets_json

COMMITS = 200
"""After so many commits the next summary is due."""
_SUFFIX = ".summary.json"
_OFFSETS = ("ends", "starts", "records")


def summary_name(number: int) -> str:
    """File name of the summary of all commits up to this one."""
    return f"{number:012d}{_SUFFIX}"


def is_summary(path: str) -> bool:
    """Whether a manifest file is a summary and no commit."""
    return path.endswith(_SUFFIX)


def number_of(path: str) -> int:
    """The number of the commit, or the last one summed up, from the name of a manifest file."""
    return int(path.rpartition("/")[2].partition(".")[0])


def encode_summary(archive: Archive) -> str:
    """The text of a summary."""
    return json.dumps(
        {
            "v": VERSION,
            "number": archive.number,
            "cluster": archive.cluster,
            "cluster_id": archive.cluster_id,
            **{name: offsets_json(getattr(archive, name)) for name in _OFFSETS},
            "files": [asdict(each) for each in archive.files.values()],
            "topics": [asdict(each) for each in archive.topics.values()],
            "lost": [asdict(each) for each in archive.lost],
        },
        sort_keys=True,
    )


def parse_summary(text: str, *, path: str) -> Archive:
    """Reads a summary.

    Raises:
        StoredFormatError: an unknown version, or not ours.
    """
    try:
        found: dict[str, Any] = json.loads(text)
        check_version(found["v"], path=path)
        files = [ArchivedFile(**each) for each in found["files"]]
        topics = [ArchivedTopic(**each) for each in found["topics"]]
        return Archive(
            number=found["number"],
            cluster=found["cluster"],
            cluster_id=found["cluster_id"],
            **{name: keyed_offsets(found[name]) for name in _OFFSETS},
            files={each.path: each for each in files},
            topics={each.name: each for each in topics},
            lost=[Lost(**each) for each in found["lost"]],
        )
    except (KeyError, TypeError, ValueError) as error:
        raise unreadable(path, error) from error
