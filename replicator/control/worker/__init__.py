"""One worker's part in one pair: membership of the group, its lanes, its record, its controller.

Decides when a lane starts and ends here; what it should do comes from ``replicator.control.lanes``.
Begin with ``pair_runner`` (the thread of a pair), then ``owned_lanes``.
"""
