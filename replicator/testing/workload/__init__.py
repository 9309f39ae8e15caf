"""replicator.testing.workload.workload."""
