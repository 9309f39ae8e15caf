"""A valid file becomes a frozen plan, or a list of all its problems with their places.

Decided here: what clusters, links and flows may say together (the ``*_rules``) and what a file leaves to defaults
(``expand``). Start with ``compile``.
"""
