"""replicator.control.controller.controller."""
