"""Positions of consumer groups carried over to the other cluster.

Decided here: what becomes of a group's position (``group_decision``). Start with ``group_sync``.
"""
