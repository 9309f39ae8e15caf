"""A flow whose history is copied by tasks, between the shared clusters."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

# Tests are imported one by one, without packages: the harness beside them has to be made known.
sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[2] / "acceptance"))

from scene_fixture import pytest_runtest_makereport, scene
from seed_lab import SeedLab

__all__ = ["lab", "pytest_runtest_makereport", "scene"]


@pytest.fixture
def lab(east, west, unique: str, tmp_path: Path) -> Iterator[SeedLab]:
    """A topology of its own name; children of the test end with it."""
    lab = SeedLab(east, west, unique, tmp_path)
    yield lab
    lab.close()
