"""replicator.control.worker."""
