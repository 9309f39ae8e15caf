"""What is decided about topics: to create, grow, alter, refuse or give up a target topic. Pure.

Decided here: one topic at a time, and again only where something that its decision rests on changed.
Start reading in ``topic_decision``; ``unselected`` is about topics that no link selects any more.
"""
