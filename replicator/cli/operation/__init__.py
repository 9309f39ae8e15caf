"""Verbs of every day: run a worker, see how links fare, pause them, repair what was set aside.

Decided here: options and printing only. Start with ``run`` and ``status``.
"""
