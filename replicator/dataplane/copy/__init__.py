"""replicator.dataplane.copy."""
