"""Room: policy."""
