"""The processes that lanes run in, and the group membership that says which lanes a worker owns.

Decided here: which process a lane runs in, and when a process that died is replaced.
Start with process_pool.py (the worker's side) and lane_process.py (the other end of the socket).
"""
