"""Room: kafka."""
