"""Directories of local clusters, also those whose owner was killed before it could tidy up."""

import fcntl
import os
import shutil
import tempfile
from pathlib import Path

_PREFIX = "replicator-kafka-"


class ScratchDirectory:
    """A temporary directory that is locked as long as its owner lives.

    The lock distinguishes a directory in use from an abandoned one: the kernel drops it with the
    process, however that ends, and the next cluster to start removes what it finds unlocked.
    """

    def __init__(self, name: str) -> None:
        _remove_abandoned()
        self.path = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{name}-"))
        self._lock = os.open(self.path / "lock", os.O_CREAT | os.O_RDWR, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def remove(self) -> None:
        """Deletes everything; a second call does nothing."""
        if self._lock >= 0:
            shutil.rmtree(self.path, ignore_errors=True)
            os.close(self._lock)
            self._lock = -1


def _remove_abandoned() -> None:
    for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*/lock"):
        try:
            handle = os.open(path, os.O_RDWR)
        except OSError:
            continue  # removed meanwhile, or another user's
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            pass  # in use
        else:
            shutil.rmtree(path.parent, ignore_errors=True)
        finally:
            os.close(handle)
