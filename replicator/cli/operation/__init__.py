"""Verbs of every day: run a worker, see how links fare, pause them, mend what was set aside.

Decided here: options and printing only. Start with ``run`` and ``status``.
"""
