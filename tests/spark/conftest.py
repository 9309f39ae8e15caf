"""One Spark session for all tests of a process: it takes ten seconds to start."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from copied_pair import CopiedPair
from pyspark.sql import SparkSession

from replicator.spark.session.session import spark_session
from replicator.spark.session.settings import SparkSettings
from replicator.testing import LocalCluster


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    # Small data and a busy machine: compiling costs far more than it gives here.
    conf = {
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.shuffle.partitions": "4",
    }
    settings = SparkSettings(master="local[2]", conf=tuple(conf.items()))
    with spark_session(settings, name="tests") as session:
        yield session


@pytest.fixture
def pair(
    tmp_path: Path, east: LocalCluster, west: LocalCluster, unique: str
) -> Callable[..., CopiedPair]:
    """Makes a flow over one topic, with the policy that a test wants."""

    def make(**policy: object) -> CopiedPair:
        return CopiedPair(tmp_path, unique, east, west, **policy)

    return make
