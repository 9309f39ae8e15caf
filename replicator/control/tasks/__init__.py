"""replicator.control.tasks."""
