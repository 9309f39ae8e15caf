"""What ``status``, ``topics`` and ``groups`` show, read from both sides of every pair.

Decides what state a flow, a topic and a partition is in; changes nothing.
Begin with ``collect`` (what is read), then ``facts`` and ``report`` (the JSON of the contract).
"""
