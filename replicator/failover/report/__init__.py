"""What a role change found, lost and did, in numbers and as ``-o json`` spells it. Pure.

Decided here: what counts as still to copy, and as lost. Start at ``report``.
"""
