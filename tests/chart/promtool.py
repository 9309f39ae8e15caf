"""Prometheus' own judge of rules and their behaviour."""

import shutil
import subprocess
from pathlib import Path

import pytest


def promtool(*arguments: str | Path, directory: Path) -> str:
    """Runs promtool; its words. A failure of promtool is a failure of the test."""
    if shutil.which("promtool") is None:
        pytest.fail(
            "'promtool' is missing: alerts cannot be tested. It comes with Prometheus "
            "(Debian: apt install prometheus; macOS: brew install prometheus)."
        )
    done = subprocess.run(
        ["promtool", *arguments], cwd=directory, capture_output=True, text=True, check=False,
        timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
