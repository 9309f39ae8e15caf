"""Looks at both clusters of a pair and takes the snapshot that decisions rest on.

Decided here: which questions a round asks the brokers, and which it can do without.
Start reading in ``observer``; ``cluster_reader`` keeps the view of one cluster current.
"""
