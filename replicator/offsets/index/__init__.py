"""What is stored of pairs of positions: runs of copies, paths over clusters, batch bounds.

Decided here: which stored pairs may be joined into a run. Start with ``runs``.
"""
