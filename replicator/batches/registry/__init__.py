"""Which producer ids copy from where, and so which batches are copies.

Decided here: what may not return to the cluster that it came from (``returning``). Start with ``producer_registry``.
"""
