"""replicator.testing.faults."""
