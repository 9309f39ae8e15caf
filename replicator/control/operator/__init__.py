"""What people ask for with a command: plan, apply, pause, quarantine, adoption of MirrorMaker 2.

Decided here: what a command changes, what it refuses, and what it shows before.
Start reading in ``plan`` and ``apply``; ``pause`` is the smallest command that writes.
"""
