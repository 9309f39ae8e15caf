"""replicator.control.lanes."""
