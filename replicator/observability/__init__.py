"""Log lines, metrics and health: what a worker shows of itself.

``catalogue`` declares every metric, ``samples`` makes them from a ``snapshot``; ``health`` decides about probes.
Start at ``logging`` for how lines are written, at ``metrics`` for a scrape.
"""
