"""MirrorMaker 2's topics and bytes, so that its clients and tools work on what we replicate.

Decided here: its record formats (``formats``), what each key of its properties file becomes
(``import_cluster``, ``import_flow``), and where its progress stands (``adopt``).
"""
