"""replicator.failover.run."""
