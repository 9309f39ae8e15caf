"""Room: failover. Changes which cluster of a link is active: switchover, failover and failback.

Every step is journalled, so that any operator can resume it or roll it back. Start at
``run.runner.run_transition``; the order of the steps is in ``rules.machine``.
"""
