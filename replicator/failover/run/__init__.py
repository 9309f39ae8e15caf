"""Runs transitions: entry point, the loop over the steps, automatic failover, and the history.

Start at ``runner.run_transition``; ``executor`` joins the pure machine, the steps and the journal.
"""
