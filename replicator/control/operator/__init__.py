"""replicator.control.operator."""
