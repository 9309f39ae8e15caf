"""MirrorMaker 2's properties file turned into a topology file.

Decided here: what each key becomes, as a cluster, a link or a policy. Start with ``import_map``.
"""
