"""A lane: one thread with a consumer and a producer; its take-over, sessions, recovery and idle waiting.

Decided here: where each partition starts (start_position.py), and what ends or restarts a session.
Start with lane.py (the thread), session.py (the loop), session_factory.py (what a session consists of).
"""
