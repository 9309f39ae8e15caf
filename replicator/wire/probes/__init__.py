"""Short looks at a broker: its versions, a trial login, the round trip of the line to it.

Decided here: what counts as an answer. Start with ``line_probe``.
"""
