"""replicator.spark.copy."""
