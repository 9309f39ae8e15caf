"""What a flow copies, and what the copy looks like.

Decided here: selection of topics and groups, target names, provenance and loops, topic settings, ACLs, the engine.
Start with naming.py and selection.py; the others build on them.
"""
