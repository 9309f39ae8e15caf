"""The fields of the file: names, types, bounds and their texts in the reference.

Decided here: what each part may hold, by itself. Start with ``document``.
"""
