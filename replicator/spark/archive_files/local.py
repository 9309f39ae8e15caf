"""An archive read without Spark: what is wrong with a command is said before a JVM starts."""

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

from replicator.spark.archive_files.manifest import Archive
from replicator.spark.archive_files.remote import SCHEMES, RemoteFolder
from replicator.spark.archive_files.store import require_archive
from replicator.spark.base.file_info import FileInfo

_DEFAULT_FILE_SYSTEM = "spark.hadoop.fs.defaultFS"


def known_archive(folder: str, conf: Mapping[str, str]) -> Archive | None:
    """What an archive holds that is local or in an S3 store; None where only Spark can read it.

    Args:
        folder: as Spark takes it.
        conf: the settings of the session, which may name another default file system.

    Raises:
        InputError: there is no archive.
        StoredFormatError: a manifest cannot be read.
    """
    url = urlsplit(folder)
    elsewhere = _DEFAULT_FILE_SYSTEM in conf or "HADOOP_CONF_DIR" in os.environ
    if url.scheme == "file":
        return require_archive(LocalFolder(Path(unquote(url.path))))
    if url.scheme in SCHEMES:
        # The keys of a machine's role, a proxy, a private certificate: Spark may know more than we do.
        with contextlib.suppress(OSError, ImportError):
            return require_archive(RemoteFolder(folder, conf))
        return None
    if url.scheme or elsewhere:
        return None
    return require_archive(LocalFolder(Path(folder)))


class LocalFolder:
    """A folder of this machine, as ``store`` reads one."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.root = str(root)

    def path(self, *parts: str) -> str:
        """A whole path below the folder."""
        return str(self._root.joinpath(*parts))

    def list(self, path: str) -> list[FileInfo]:
        """The files directly in a folder, in order of path; none where it does not exist."""
        if not Path(path).is_dir():
            return []
        return sorted(
            (
                FileInfo(str(each), each.stat().st_size)
                for each in Path(path).iterdir()
                if each.is_file()
            ),
            key=lambda each: each.path,
        )

    def read_text(self, path: str) -> str | None:
        """A whole small file; None when it is gone."""
        try:
            return Path(path).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
