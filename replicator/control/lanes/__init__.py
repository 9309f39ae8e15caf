"""From the control topic to the lanes: which lane has which partition, and what each should do.

Decides the layout of lanes, where checkpoints move when it changes, orders, and shares of a throttle.
Begin with ``layout`` (which lanes serve a link), then ``lane_specs`` (what each lane does).
"""
