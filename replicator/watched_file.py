"""Files whose content may be exchanged while the program runs: mounted secrets, tokens, the topology.

Content is compared, not times: kubelet swaps a symlink of the directory, editors write a new file, and
neither keeps an inode or always moves the time forward.
"""

import hashlib
from pathlib import Path


def content_digest(path: Path) -> str | None:
    """SHA-256 of what is behind the path now; None where nothing can be read.

    A pipe or a device is never read: it gives its content to one reader only.
    """
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None
    except OSError:
        return None


class WatchedFile:
    """Tells once of each new content; a file that is missing for a moment changes nothing."""

    def __init__(self, path: Path) -> None:
        """What is there now is not new."""
        self._path = path
        self._digest = content_digest(path)

    def changed(self) -> bool:
        """Whether there is another content than at the last call."""
        digest = content_digest(self._path)
        if digest is None or digest == self._digest:
            return False
        self._digest = digest
        return True
