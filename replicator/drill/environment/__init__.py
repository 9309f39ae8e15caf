"""replicator.drill.environment."""
