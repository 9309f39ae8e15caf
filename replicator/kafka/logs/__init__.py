"""Compacted topics as logs of records: read to their end, followed, and written.

Decided here: when a read has seen everything, and how a transaction is written and ended. Start with ``compacted_log``
and ``log_writer``.
"""
