"""What a lane reads before it copies: its last owner's checkpoints, the source's bounds, the target's logs.

Decided here: where each partition starts, and whether the target still holds what its checkpoint claims.
Start with lane_records.py and takeover.py, then start_position.py and target_loss.py, which are pure.
"""
