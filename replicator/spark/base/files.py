"""Files of whatever Spark can write to (local paths, HDFS, S3 and others), through its own file systems."""

import builtins
import contextlib
import os
import re
import secrets
from typing import TYPE_CHECKING, Any

from replicator.errors import AlreadyExistsError, InputError, ReplicatorError
from replicator.spark.base.file_info import FileInfo
from replicator.spark.base.java_errors import innermost_cause, spark_job_error

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOCAL = "file:"
_NO_FILE_SYSTEM = re.compile(
    r"No FileSystem for scheme|ClassNotFoundException|IllegalArgumentException|URISyntaxException"
)
_FIRST_LOOK = dict.fromkeys(("abfs", "abfss"), ("fs.azure.io.retry.max.retries", 3))
"""By scheme, the setting for how often a store is asked again. Azure's client asks for a name that is wrong thirty times,
in a quarter of an hour and without a word; a store that was there is asked as often as its client likes."""


class Files:
    """A folder and what is below it; on the driver only. Paths are relative to it or whole."""

    def __init__(self, session: "SparkSession", root: str) -> None:
        """Takes the folder as Spark would: with a scheme, or a path of the default file system.

        Raises:
            InputError: no file system knows the path.
            SparkJobError: its file system does not open, for want of keys or of an answer for example.
        """
        # The file systems of Spark are Java's, and this is the library's only door to them.
        context: Any = session.sparkContext
        self._jvm = context._jvm  # noqa: SLF001
        try:
            path = self._jvm.org.apache.hadoop.fs.Path(root)
            conf = context._jsc.hadoopConfiguration()  # noqa: SLF001
            self._look(path, conf)
            self._fs = path.getFileSystem(conf)
            self.root = str(self._fs.makeQualified(path).toString()).rstrip("/")
        except Exception as error:
            cause = innermost_cause(str(error))
            if not _NO_FILE_SYSTEM.search(str(error)):
                raise spark_job_error(str(error)) from error
            raise InputError(
                f"no file system for it ({cause})",
                subject=root,
                remedy="Write a local path, or add the package of its store (docs/spark.md, 'In object stores').",
            ) from error

    def _look(self, path: Any, conf: Any) -> None:  # noqa: ANN401  Java objects
        """Raises what the store says, or why it does not answer, before anything waits for it at length."""
        java = self._jvm.org.apache.hadoop
        uri = path.toUri()
        if uri.getScheme() is None:
            uri = java.fs.FileSystem.getDefaultUri(conf)
        setting = _FIRST_LOOK.get(str(uri.getScheme()))
        if setting is None:
            return
        name, times = setting
        patience = java.conf.Configuration(conf)
        patience.setInt(name, min(times, conf.getInt(name, times)))
        store = java.fs.FileSystem.newInstance(uri, patience)
        try:
            store.exists(path)
        finally:
            store.close()

    def path(self, *parts: str) -> str:
        """A whole path below the folder."""
        return "/".join((self.root, *parts))

    def exists(self, path: str) -> bool:
        """Whether there is such a file or folder."""
        return bool(self._fs.exists(self._java(path)))

    def list(self, path: str) -> list[FileInfo]:
        """The files below a folder, at any depth, in order of path; none where it does not exist."""
        if not self.exists(path):
            return []
        found: list[FileInfo] = []
        files = self._fs.listFiles(self._java(path), True)
        while files.hasNext():
            status = files.next()
            found.append(FileInfo(str(status.getPath().toString()), int(status.getLen())))
        return sorted(found, key=lambda each: each.path)

    def folders(self, path: str) -> builtins.list[str]:
        """The folders directly below a folder; none where it does not exist."""
        if not self.exists(path):
            return []
        return sorted(
            str(status.getPath().toString())
            for status in self._fs.listStatus(self._java(path))
            if status.isDirectory()
        )

    def read_text(self, path: str) -> str | None:
        """A whole small file; None when it is gone."""
        try:
            stream = self._fs.open(self._java(path))
        except Exception:
            if self.exists(path):
                raise
            return None
        try:
            return str(
                self._jvm.org.apache.commons.io.IOUtils.toString(
                    stream, self._jvm.java.nio.charset.StandardCharsets.UTF_8
                )
            )
        finally:
            stream.close()

    def create(self, path: str, text: str) -> None:
        """Writes a file that must not exist yet, whole or not at all where the file system can.

        Raises:
            AlreadyExistsError: it exists.
        """
        # A name of its own: two who write at once must not write into one file.
        hidden = f"{path}.{secrets.token_hex(6)}.tmp"
        stream = self._fs.create(self._java(hidden), True)
        try:
            stream.write(bytearray(text.encode()))
        finally:
            stream.close()
        try:
            made = self._named(hidden, path)
        finally:
            self.delete(hidden)
        if not made:
            raise AlreadyExistsError(
                "another command wrote it first", subject=path, remedy="Read it, then go on."
            )

    def _named(self, hidden: str, path: str) -> bool:
        """Gives a finished file its name unless the name is taken; returns whether it did."""
        if hidden.startswith(_LOCAL):
            # A local rename takes the place of what is there, whatever was seen a moment before.
            with contextlib.suppress(OSError):  # a file system without links: as others do it
                try:
                    os.link(hidden.removeprefix(_LOCAL), path.removeprefix(_LOCAL))
                except FileExistsError:
                    return False
                return True
        return not self.exists(path) and bool(self._fs.rename(self._java(hidden), self._java(path)))

    def move(self, path: str, to: str) -> None:
        """Renames a file; the folder is made.

        Raises:
            ReplicatorError: the file system refused.
        """
        target = self._java(to)
        self._fs.mkdirs(target.getParent())
        if not self._fs.rename(self._java(path), target):
            raise ReplicatorError(
                f"cannot be renamed to {to}", subject=path, remedy="Check the rights on the folder."
            )

    def delete(self, path: str) -> None:
        """Deletes a file or a whole folder; nothing where there is none."""
        self._fs.delete(self._java(path), True)

    def _java(self, path: str) -> Any:  # noqa: ANN401  a Java object
        return self._jvm.org.apache.hadoop.fs.Path(path)
