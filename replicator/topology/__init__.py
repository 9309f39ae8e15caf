"""Room: topology."""
