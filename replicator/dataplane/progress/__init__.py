"""How far each partition was copied, and how that is stored: checkpoints, commits, index notes, counters.

Decided here: when to commit (pacing.py), and that no checkpoint is ahead of what the target has.
Start with commit.py and partition_state.py.
"""
