"""Both ends of a copy: batches fetched from source leaders and sent to target leaders.

Decided here: what is in flight, and when a transaction may end. Start with ``source_reader`` and ``target_writer``.
"""
