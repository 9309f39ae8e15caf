"""One lane at a time between two real clusters, in this process: quick to start, easy to look into."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from lane_lab import LaneLab
from worker_lab import WorkerLab


@pytest.fixture
def lab(east, west, unique: str) -> Iterator[LaneLab]:
    """Lanes from ``east`` to ``west`` under a topology name of their own; stopped after the test."""
    lab = LaneLab(east, west, name=unique)
    yield lab
    lab.close()


@pytest.fixture
def worker(tmp_path: Path, unique: str) -> Iterator[WorkerLab]:
    """A worker that is not started yet; killed after the test."""
    worker = WorkerLab(tmp_path, unique)
    yield worker
    worker.stop()
