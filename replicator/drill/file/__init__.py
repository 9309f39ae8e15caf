"""replicator.drill.file."""
