"""replicator.testing.kit."""
