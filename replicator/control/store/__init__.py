"""replicator.control.store."""
