"""How a worker listens: its address, its certificate, its connections.

Decided here: which connections are kept so that probes always get through (``connection``). Start at ``start``, which
imports the slow web framework only once a server starts.
"""
