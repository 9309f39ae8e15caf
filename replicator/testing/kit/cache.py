"""Where this machine keeps what test clusters share."""

import os
from pathlib import Path


def cache_root() -> Path:
    """``$REPLICATOR_CACHE``, else ``$XDG_CACHE_HOME/replicator``, else ``~/.cache/replicator``."""
    own = os.environ.get("REPLICATOR_CACHE")
    if own:
        return Path(own)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "replicator"
