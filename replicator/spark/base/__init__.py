"""replicator.spark.base."""
