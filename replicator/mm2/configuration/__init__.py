"""MirrorMaker 2's properties file turned into a topology file.

Decided here: what each key becomes and which keys have no counterpart (``unmapped``). Start with ``import_map``.
"""
