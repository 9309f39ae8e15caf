"""The rules of a flow, each a pure function of its arguments.

Decided here: what is copied and what its copy looks like (``copies``), how fast and in how much memory (``capacity``).
Start at ``values``, the policy of a link after all defaults; ``procedure`` is the same of its role changes.
"""
