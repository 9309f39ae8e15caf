"""Breaks the network between clients and brokers, with and without knowing the protocol.

`fault_proxy.py` changes what happens to bytes: cuts, black holes, latency, bandwidth. `protocol_proxy.py`
breaks the requests that a list of rules names; start with `protocol_rules.py`.
"""
