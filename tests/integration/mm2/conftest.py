"""Three clusters of their own in a row, because MirrorMaker 2's topics are shared by a whole cluster."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

# Tests are imported one by one, without packages: harnesses have to be made known.
sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "engine"))

from mm2_chain import Chain

from replicator.testing import LocalCluster, start_all


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chain]:
    """East to west to north with a worker that has caught up."""
    row = tuple(LocalCluster(name) for name in ("east", "west", "north"))
    start_all(row)
    chain = Chain(tmp_path_factory.mktemp("mm2"), *row)
    try:
        chain.start()
        yield chain
    finally:
        chain.worker.stop()
        for cluster in row:
            cluster.stop()
