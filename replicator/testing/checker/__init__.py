"""Judges a history: what was written, where copies turned up, what groups read, who was active. Pure.

An anomaly is one kind of finding (`anomalies.py`); each file of rules finds some kinds.
Start with `check.py`, then `history.py` for the events.
"""
