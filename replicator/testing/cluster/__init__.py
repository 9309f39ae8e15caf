"""replicator.testing.cluster.local_cluster."""
