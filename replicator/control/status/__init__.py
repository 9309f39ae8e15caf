"""replicator.control.status.collect."""
