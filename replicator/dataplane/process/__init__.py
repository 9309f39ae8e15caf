"""replicator.dataplane.process."""
