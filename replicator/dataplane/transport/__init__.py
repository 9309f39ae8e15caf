"""replicator.dataplane.transport."""
