"""Consumer groups, asked of their coordinators.

Decided here: which versions are spoken, and what the state of a group means. Start with ``group_states``.
"""
