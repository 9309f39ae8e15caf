"""A session of the batches engine: record batches are carried as bytes, and committed with their checkpoints.

Decided here: when batches are read, sent and stored, and what ends the session.
Start with batch_session.py (the loop), then batch_unit.py and batch_clients.py; the carrying is in `batches`.
"""
