"""One range of one partition, copied to its end by a lane of its own: what Spark's tasks run.

Decided here: how long a range may stand still, and what its task then fails with. Start with range_copy.py.
"""
