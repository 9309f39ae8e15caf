"""replicator.control.reconcile.decide."""
