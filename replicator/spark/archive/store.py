"""An archive on its file system: read its manifests, add a commit, sweep what no commit names."""

from replicator.errors import InputError
from replicator.spark.archive.manifest import (
    FOLDER,
    Archive,
    Commit,
    folded,
    manifest_name,
    parse_commit,
)
from replicator.spark.files import Files

DATA = "data"
STAGING = "_staging"


def load_archive(files: Files) -> Archive:
    """What the archive holds; empty where there is none yet.

    Raises:
        StoredFormatError: a manifest cannot be read.
    """
    return folded(
        parse_commit(files.read_text(each.path), path=each.path)
        for each in files.list(files.path(FOLDER))
        if each.path.endswith(".json")
    )


def require_archive(files: Files) -> Archive:
    """The same, for who wants to read.

    Raises:
        InputError: there is no archive.
    """
    archive = load_archive(files)
    if not archive.number:
        raise InputError(
            "there is no archive here", subject=files.root, remedy="Name its folder with --archive."
        )
    return archive


def commit(files: Files, made: Commit) -> None:
    """Makes a commit count, then deletes the files that it replaces.

    Raises:
        AlreadyExistsError: another command committed in between; nothing of ours counts.
    """
    files.create(files.path(FOLDER, manifest_name(made.number)), made.to_json())
    for path in made.replaces:
        files.delete(files.path(path))


def sweep(files: Files, archive: Archive) -> int:
    """Deletes what killed commands left behind; returns how many files that were."""
    files.delete(files.path(STAGING))
    strays = [
        each.path
        for each in files.list(files.path(DATA))
        if each.path.removeprefix(f"{files.root}/") not in archive.files
    ]
    for path in strays:
        files.delete(path)
    return len(strays)
