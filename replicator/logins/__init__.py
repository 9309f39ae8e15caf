"""What clients of a cluster log in with: secrets, certificates and tokens, followed while they change.

There is one `ClusterLogin` per cluster and process, in ``cluster_login``: read that first. What it
gives is always whole: new files that cannot be used change nothing, and are told as a problem.
"""
