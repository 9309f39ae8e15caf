"""replicator.dataplane.lane.lane."""
