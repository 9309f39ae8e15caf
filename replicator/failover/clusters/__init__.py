"""What a role change does on the two clusters of a link: lag, fences, groups, tail, reverse flow.

Nothing here knows the order of the steps. Start at ``link_clusters.LinkClusters``.
"""
