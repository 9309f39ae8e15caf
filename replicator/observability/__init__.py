"""Room: observability."""
