"""A lane: one thread that takes over, runs one session after another, and answers to its process.

Decided here: what ends, restarts or pauses a session, and which partitions the lane has at a moment.
Start with lane.py (the thread); ``ranges`` runs a lane for one range.
"""
