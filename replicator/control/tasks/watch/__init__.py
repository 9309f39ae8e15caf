"""Periodic tasks that watch both clusters: canaries, last contact, open transactions, split brain.

Decided here: how often each looks, and from when on what it finds is a problem.
Start reading in ``last_contact``; ``canary`` is the only one that writes records.
"""
