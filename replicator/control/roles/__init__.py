"""replicator.control.roles."""
