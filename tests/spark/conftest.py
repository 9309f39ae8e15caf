"""One Spark session for all tests of a process: it takes ten seconds to start."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from replicator.spark.session import spark_session
from replicator.spark.settings import SparkSettings


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    settings = SparkSettings(master="local[2]", conf=(("spark.sql.shuffle.partitions", "4"),))
    with spark_session(settings, name="tests") as session:
        yield session
