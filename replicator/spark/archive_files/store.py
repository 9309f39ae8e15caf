"""An archive on its file system: read its manifests, add a commit, sweep what no commit names."""

from collections.abc import Callable

from replicator.errors import AlreadyExistsError, InputError
from replicator.spark.archive_files.manifest import (
    FOLDER,
    Archive,
    Commit,
    folded,
    manifest_name,
    parse_commit,
)
from replicator.spark.archive_files.summary import (
    encode_summary,
    is_summary,
    number_of,
    parse_summary,
    summary_name,
)
from replicator.spark.base.file_info import ReadableFolder
from replicator.spark.base.files import Files

DATA = "data"
STAGING = "_staging"
_LOOKS = 5
"""How often manifests are listed again because a writer summed them up while they were read."""
_OPENINGS = 5


def load_archive(files: ReadableFolder) -> Archive:
    """What the archive holds; empty where there is none yet.

    Raises:
        StoredFormatError: a manifest cannot be read.
        AlreadyExistsError: others write it so often that it cannot be read whole.
    """
    for _ in range(_LOOKS):
        archive = _loaded(files)
        if archive is not None:
            return archive
    raise _busy(files)


def require_archive(files: ReadableFolder) -> Archive:
    """The same, for readers.

    Raises:
        InputError: there is no archive.
    """
    archive = load_archive(files)
    if not archive.topics:
        raise InputError(
            "there is no archive here", subject=files.root, remedy="Name its folder with --archive."
        )
    return archive


def open_archive(files: Files, *, cluster: str, cluster_id: str, at_ms: int) -> Archive:
    """Takes the archive over for writing: no command that opened it before can commit any more.

    Only then may what no commit names be swept: else it could be what another is about to commit.

    Raises:
        AlreadyExistsError: others open it at the same time, again and again.
        StoredFormatError: a manifest cannot be read.
    """
    for _ in range(_OPENINGS):
        archive = load_archive(files)
        opened = Commit(archive.number + 1, "opened", at_ms, cluster, cluster_id)
        try:
            commit(files, opened)
        except AlreadyExistsError:
            continue
        archive.take(opened)
        return archive
    raise _busy(files)


def commit(files: Files, made: Commit, *, counted: Callable[[], None] = lambda: None) -> None:
    """Makes a commit count, then deletes the files that it replaces.

    Args:
        files: the archive.
        made: the commit.
        counted: called between the two: what names files elsewhere must not name deleted ones.

    Raises:
        AlreadyExistsError: another command opened the archive since; nothing of ours counts.
    """
    try:
        files.create(files.path(FOLDER, manifest_name(made.number)), made.to_json())
    except AlreadyExistsError as error:
        raise _busy(files) from error
    counted()
    for path in made.replaces:
        files.delete(files.path(path))


def sum_up(files: Files, archive: Archive) -> None:
    """Writes a summary of all commits and deletes those commits; only for the command that opened the archive.

    Raises:
        AlreadyExistsError: there is one already, so another command writes the archive.
    """
    files.create(files.path(FOLDER, summary_name(archive.number)), encode_summary(archive))
    mine = summary_name(archive.number)
    for each in files.list(files.path(FOLDER)):
        if not each.path.endswith(f"/{mine}") and number_of(each.path) <= archive.number:
            files.delete(each.path)


def sweep(files: Files, archive: Archive) -> int:
    """Deletes what killed commands left behind; returns how many files that were.

    Only for the command that opened the archive, before it writes anything.
    """
    files.delete(files.path(STAGING))
    strays = [
        each.path
        for each in files.list(files.path(DATA))
        if each.path.removeprefix(f"{files.root}/") not in archive.files
    ]
    for path in strays:
        files.delete(path)
    for each in files.list(files.path(FOLDER)):
        if not each.path.endswith(".json"):
            files.delete(each.path)  # a manifest that was never finished
    return len(strays)


def _loaded(files: ReadableFolder) -> Archive | None:
    """None when a manifest that was listed is gone: it was summed up meanwhile."""
    listed = [e.path for e in files.list(files.path(FOLDER)) if e.path.endswith(".json")]
    newest = max((path for path in listed if is_summary(path)), key=number_of, default=None)
    archive = Archive()
    if newest is not None:
        text = files.read_text(newest)
        if text is None:
            return None
        archive = parse_summary(text, path=newest)
    commits: list[Commit] = []
    for path in listed:
        if is_summary(path) or number_of(path) <= archive.number:
            continue
        text = files.read_text(path)
        if text is None:
            return None
        commits.append(parse_commit(text, path=path))
    return folded(commits, archive)


def _busy(files: ReadableFolder) -> AlreadyExistsError:
    return AlreadyExistsError(
        "another command writes this archive",
        subject=files.root,
        remedy="Only one command at a time may write an archive; the other one archives what this one did not commit.",
    )
