"""What clusters, workloads and users' tests share: waiting, ports, child processes, clocks.

Nothing here knows Kafka; children and directories never outlive the process that made them.
Start with `waiting.py`.
"""
