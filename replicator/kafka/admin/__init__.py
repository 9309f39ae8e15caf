"""Questions to a cluster and changes to it: topics, settings, groups, offsets, rules.

Decided here: what one question asks and what it answers when brokers refuse a part. Start with ``admin.ClusterAdmin``.
"""
