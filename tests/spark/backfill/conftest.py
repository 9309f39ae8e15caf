"""A flow whose history is copied by tasks, between the shared clusters."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from scene_fixture import pytest_runtest_makereport, scene
from seed_lab import SeedLab

__all__ = ["lab", "pytest_runtest_makereport", "scene"]


@pytest.fixture
def lab(east, west, unique: str, tmp_path: Path) -> Iterator[SeedLab]:
    """A topology of its own name; children of the test end with it."""
    lab = SeedLab(east, west, unique, tmp_path)
    yield lab
    lab.close()
