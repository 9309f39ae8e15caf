"""Boots, secures, breaks and stops real Kafka clusters on this machine.

Whether brokers are JVMs or containers is decided in `backends.py`, their settings in `broker_settings.py`.
Start with `local_cluster.py`; what it puts together is in `assembly.py`.
"""
