"""replicator.drill.execution."""
