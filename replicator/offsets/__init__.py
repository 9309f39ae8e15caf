"""Where a position on one cluster is on another, exactly; and group positions carried over.

Decided here: the bounds that checkpoints and index give a translation (``stored``, ``forward``,
``backward``), and what becomes of a group's position (``group_decision``). Start with ``translator``.
"""
