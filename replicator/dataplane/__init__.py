"""Room: dataplane."""
