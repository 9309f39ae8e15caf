"""Runs a drill: traffic, the fault or role change, recovery, and reading everything at the end.

Start at ``execution.Execution.run``.
"""
