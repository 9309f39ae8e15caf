"""One session of a lane: a consumer and a producer, from the take-over to the next stop or failure.

Decided here: where each partition starts (start_position.py), and when records are read and committed.
Start with session.py (the loop), then session_factory.py (what a session consists of) and takeover.py.
"""
