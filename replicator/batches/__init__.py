"""Whole record batches between two clusters, as bytes: no record is decoded on the usual way.

Decided here: which batches of a fetch may pass as they are, which are packed anew, and which are left out.
Start with ``codec.found_batches``, then ``codec.header`` and ``codec.repack``: pure functions over memoryviews.
"""
