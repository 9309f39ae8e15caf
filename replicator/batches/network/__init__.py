"""Non-blocking connections of one lane, on one selector.

Decided here: how many connections there are, and what happens when one breaks. Start with ``io_loop``.
"""
