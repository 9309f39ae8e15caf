"""replicator.testing.checker.check."""
