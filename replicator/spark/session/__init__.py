"""replicator.spark.session.session."""
