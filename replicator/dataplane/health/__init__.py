"""What holds a lane up without an error: silent partitions, writes that cannot be stored, broken connections.

Decided here: when a lane reports a problem, and which partitions it names.
Start with standstill.py (the source), stuck_writes.py (the target) and held_id.py (a take-over that has to wait).
"""
