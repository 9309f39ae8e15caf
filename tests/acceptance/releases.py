"""Two releases of the program, each installed from its wheel into a folder of its own.

Dependencies are those of this environment. The older release is the last commit of the first edition.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from acceptance_worker import in_release

from replicator.testing.kit.child_processes import start_child

ROOT = Path(__file__).parents[2]
OLDER = "3cfdae7"
"""The commit of the older release."""

BUILD_SECONDS = 240.0
COMMAND_SECONDS = 120.0


def older_sources(folder: Path) -> Path:
    """The older release's source files; skips the test where the history of the repository is not there."""
    packed = folder / "older.tar"
    archive = ["git", "-C", str(ROOT), "archive", "--output", str(packed), OLDER]
    done = subprocess.run(archive, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"needs commit {OLDER} in the history of the repository: {done.stderr.strip()}")
    sources = folder / "sources"
    sources.mkdir()
    subprocess.run(["tar", "-xf", str(packed), "-C", str(sources)], check=True)
    return sources


def installed(sources: Path, folder: Path) -> Path:
    """Builds the wheel of some sources and installs it, and nothing that it depends on, into a folder."""
    wheels, target = folder / "wheels", folder / "program"
    _pip("wheel", "--no-deps", "--wheel-dir", str(wheels), str(sources))
    (wheel,) = wheels.glob("replicator-*.whl")
    _pip("install", "--no-deps", "--no-index", "--target", str(target), str(wheel))
    return target


def _pip(*words: str) -> None:
    command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *words]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=BUILD_SECONDS
    )
    assert done.returncode == 0, done.stderr


def run_release(release: Path, log: Path, topology: Path, *words: str) -> tuple[int | None, Any]:
    """Runs a command of a release with ``-o json``; its exit code and what it printed as JSON."""
    child = start_child(
        [sys.executable, "-m", "replicator", *words, "-f", str(topology), "-o", "json"],
        output=log,
        environment={**in_release(release), "COLUMNS": "200"},
    )
    ended = child.wait(COMMAND_SECONDS)
    said = log.read_text(errors="replace")
    assert ended, said
    assert "{\n" in said, said
    return child.exit_code(), json.loads(said[said.index("{\n") :])
