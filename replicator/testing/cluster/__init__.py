"""Boots, secures, breaks and stops real Kafka clusters on this machine.

Decided here: ports, listeners and users of a cluster; `brokers` decides what one broker runs in and with.
Start with `local_cluster.py`; what it puts together is in `assembly.py`.
"""
