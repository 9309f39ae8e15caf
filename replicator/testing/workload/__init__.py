"""Traffic with identifiable records, and looking at what became of it; every event goes into a history.

Outcomes are recorded as an application sees them: an unknown outcome stays unknown.
Start with `writer.py` and `scan.py`.
"""
