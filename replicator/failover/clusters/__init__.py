"""replicator.failover.clusters."""
