"""replicator.failover.rules."""
