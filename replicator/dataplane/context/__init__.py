"""What a lane keeps across its sessions and lends to each: its throttle, counters, and the poll of idle lanes.

Decided here: how much a lane may read now, and who polls while it is idle. Start with lane_context.py.
"""
