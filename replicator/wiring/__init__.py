"""Composition roots: which parts a worker, its HTTP server and a lane process consist of, and who knows whom.

Decided here: what is started, in which order it stops, and what a thread that dies means for readiness.
Start with worker.py; lane_main.py is the entry point of a lane process.
"""
