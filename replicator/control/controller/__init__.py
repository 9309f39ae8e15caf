"""Runs the rounds of one pair: observe, decide, act, write; in the worker that owns lane 0.

Decided here: when a round runs, what it does first, and what becomes of an action that was refused.
Start reading in ``controller``; ``thread`` runs it with its periodic tasks, ``lane_migration`` moves lanes.
"""
