"""What each step of a switchover, failover or failback does, and what is recorded of it.

Every step may run twice. Start at ``switchover.SwitchoverSteps``; ``journal`` holds the lock and the
records, ``preflight`` the checks before anything changes.
"""
