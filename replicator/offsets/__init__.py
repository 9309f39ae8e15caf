"""Where a position on one cluster is on another, exactly; and group positions carried over."""
