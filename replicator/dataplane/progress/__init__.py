"""replicator.dataplane.progress.progress_group."""
