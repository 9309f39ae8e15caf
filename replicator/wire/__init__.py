"""Room: wire."""
