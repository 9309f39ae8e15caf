"""MirrorMaker 2's topics and bytes, so that its clients and tools work on what we replicate.

Decided here: its record formats and where its progress stands (``topics``), and what each key of
its properties file becomes (``configuration``, start with ``import_map``).
"""
