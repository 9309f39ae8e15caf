"""Batch headers, and the two requests of the hot path, as pure functions over memoryviews.

Decided here: which batches pass as they are, which are packed anew, and which are left out. Start with ``found_batches``.
"""
