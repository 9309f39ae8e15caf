"""One session of a lane: a consumer and a producer, from a finished take-over to the next stop or failure.

Decided here: when records are read and committed, and how a session ends; ``context`` is what it borrows.
Start with session.py (the loop), then session_factory.py (what a session consists of) and session_clients.py.
"""
