"""Decides what brings the target of a pair to what the plan wants. Pure but for two readers.

Decided here: topics to create, grow, alter and delete, lanes, records of the control topic, ACLs.
Start reading in ``decide``; ``topics`` is about one topic each, ``snapshot`` is what it all rests on.
"""
