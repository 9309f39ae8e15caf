"""The topology file as text: read, checked against its schema, and described in a reference.

Decided here: the form of a valid file (``shape``, ``schema``) and where secrets are read (``secrets``). Start with ``load``.
"""
