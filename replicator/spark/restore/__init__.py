"""Room: restore. Archived records back into topics, in order and exactly once, however often it is killed.

``selection`` decides what is restored where, ``task`` where a partition goes on after an interruption.
Start at ``run.restore``.
"""
