"""replicator.failover.steps."""
