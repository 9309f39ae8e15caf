"""Breaks the network between clients and brokers: cuts, black holes, latency, bandwidth.

A proxy changes what happens to bytes and never looks into them.
Start with `fault_proxy.py`; one connection is in `proxy_connection.py`.
"""
