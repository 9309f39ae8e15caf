"""One broker of a local cluster: a JVM started from Maven jars, or a container.

Decided here: which of the two it is (`backends.py`), its settings, and where its jars come from.
Start with `broker.py`; `local_cluster.py` above makes clusters of them.
"""
