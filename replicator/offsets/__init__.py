"""Where a position on one cluster is on another, exactly; and group positions carried over.

Decided here: the bounds that checkpoints and index give a translation (``index``,
``translation``), and what becomes of a group's position (``groups``). Start with ``translation.translator``.
"""
