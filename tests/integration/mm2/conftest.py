"""Three clusters of their own in a row, because MirrorMaker 2's topics are shared by a whole cluster."""

from collections.abc import Iterator

import pytest
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
