"""MirrorMaker 2's own topics: heartbeats, checkpoints and offset syncs.

Decided here: their record formats (``formats``) and where MirrorMaker 2's progress stands (``adopt``).
"""
