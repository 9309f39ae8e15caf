"""The messages between a worker and its lane processes, and the spec of a lane.

Everything is frozen and travels as JSON lines; statistics travel as differences.
Start with messages.py; spec.py is what a lane has to do.
"""
