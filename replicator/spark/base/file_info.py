"""What is read of a folder of files, wherever it is: by Spark's file systems or by this machine's."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class FileInfo:
    """One file: its whole path and its size."""

    path: str
    bytes: int


class ReadableFolder(Protocol):
    """A folder whose small files can be read."""

    root: str

    def path(self, *parts: str) -> str:
        """A whole path below the folder."""
        ...

    def list(self, path: str) -> Sequence[FileInfo]:
        """The files below a folder, in order of path; none where it does not exist."""
        ...

    def read_text(self, path: str) -> str | None:
        """A whole small file; None when it is gone."""
        ...
