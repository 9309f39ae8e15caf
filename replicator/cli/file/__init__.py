"""Verbs about the topology file, before anything runs by it.

Decided here: options and printing only. Start with ``validate`` and ``plan``; ``import_mm2`` writes such a file.
"""
