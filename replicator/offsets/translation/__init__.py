"""A position on one cluster as a position on another, with the grade of its exactness.

Decided here: how a position goes forward and back, and what is read when the index does not tell. Start with ``translator``.
"""
