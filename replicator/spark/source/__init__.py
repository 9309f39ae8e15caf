"""replicator.spark.source."""
