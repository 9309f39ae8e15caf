"""The fixture ``scene`` and the hook it needs; folders of tests that use it import both."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from acceptance_scene import Scene

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
    """A topology of its own name, so that tests can share clusters; ended after the test."""
    scene = Scene(name=unique, directory=tmp_path, engine=request.config.getoption("--engine"))
    yield scene
    scene.close(show_logs=request.node.stash.get(_OUTCOME, True))
