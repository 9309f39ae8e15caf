"""A flow whose history is copied by tasks, between the shared clusters."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

# Tests are imported one by one, without packages: the harness beside them has to be made known.
sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[2] / "acceptance"))

from acceptance_scene import Scene
from seed_lab import SeedLab

_OUTCOME = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item):
    """Notes whether the test itself failed, so that logs are shown only then."""
    report = yield
    if report.when == "call":
        item.stash[_OUTCOME] = report.failed
    return report


@pytest.fixture
def scene(unique: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Scene]:
    """Workers, writers and the judge of the acceptance tests; ended after the test."""
    scene = Scene(name=unique, directory=tmp_path)
    yield scene
    scene.close(show_logs=request.node.stash.get(_OUTCOME, True))


@pytest.fixture
def lab(east, west, unique: str, tmp_path: Path) -> Iterator[SeedLab]:
    """A topology of its own name; children of the test end with it."""
    lab = SeedLab(east, west, unique, tmp_path)
    yield lab
    lab.close()
