"""The stored formats that several rooms read: checkpoints, and what lanes report.

A format is written and read here and nowhere else, and its rules are stated once: which of two
checkpoints of a source partition holds is ``checkpoint.merge_checkpoints``. Pure.
"""
