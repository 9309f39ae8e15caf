"""Which build this is, for ``build_info``, ``--version`` and the API."""

import os
import platform
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Build:
    """Version of the package, source revision of the image (or ``unknown``), Python version."""

    version: str
    revision: str
    python: str


def current_build() -> Build:
    """The running build; the image's build sets ``REPLICATOR_REVISION`` to its commit."""
    from replicator import __version__

    return Build(
        version=__version__,
        revision=os.environ.get("REPLICATOR_REVISION", "unknown"),
        python=platform.python_version(),
    )
