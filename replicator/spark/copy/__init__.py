"""Room: copy. History and whole flows copied by Spark tasks, exactly once.

Start at ``task.copy_order``, which one task runs for one partition; ``bulk_plan`` decides what
``bulk-sync`` copies, and ``stream`` runs a flow as a Structured Streaming query.
"""
