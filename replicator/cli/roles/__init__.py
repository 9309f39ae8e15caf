"""Verbs that change which side of a link is active, rehearse it, or read what was changed.

Decided here: what is asked before a role change and what is printed while it runs. Start with ``roles``.
"""
