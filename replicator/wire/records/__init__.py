"""Record batches as bytes: encoded, decoded and checked.

Decided here: the formats that are understood (magic 2 and its codecs). Start with ``record_batch``.
"""
