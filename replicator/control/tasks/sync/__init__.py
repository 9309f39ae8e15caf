"""Periodic tasks that carry something over to the target: rights, group positions, MirrorMaker 2's topics.

Decided here: how often each is carried over, and which failures an operator sees.
Start reading in ``groups``, the smallest; ``acl_sync`` and ``mm2_offsets`` hold most of the work.
"""
