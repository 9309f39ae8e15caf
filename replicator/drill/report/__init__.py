"""replicator.drill.report.report."""
