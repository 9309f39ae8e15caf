"""replicator.control.observe.observer."""
