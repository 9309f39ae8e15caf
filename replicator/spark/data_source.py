"""The Python Data Source ``replicator-kafka``: any cluster of a topology as a DataFrame."""

from pyspark.sql.datasource import DataSource


class KafkaDataSource(DataSource):
    """``spark.read.format("replicator-kafka")``."""

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "replicator-kafka"
