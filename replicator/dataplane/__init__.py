"""What moves records from source to target: processes, lanes, engines, and the checkpoints they store.

Nothing here reads the control topic: a LaneSpec says what to copy; statistics and events say what was done.
Start with lane/lane.py, then session/session.py (the loop) and copy/records_engine.py (the hot path).
"""
