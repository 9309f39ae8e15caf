"""Room: bulk. ``bulk-sync``, by hand or started by a worker: the history of topics, once.

Decided here: whether the target still holds what was copied before (``target_logs``), which records of a
compacted topic are the last of their keys (``latest_values``). Start at ``run.run_bulk``.
"""
