"""Room: verify. Both sides of a flow compared record by record over a consistent cut."""
