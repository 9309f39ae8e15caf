"""replicator.control.backfill."""
