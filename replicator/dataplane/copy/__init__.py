"""How a batch of records is copied: engines, headers and transforms, refused records, quarantine.

Decided here: what becomes of each record; an engine yields what it did, a ProgressUnit stores or aborts it.
Start with engine_protocol.py and records_engine.py; then refused_record_search.py.
"""
