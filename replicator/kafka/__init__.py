"""Everything asked of a cluster through confluent-kafka, and the one error tree its errors map to.

Decided here: settings of clients, which errors pass by themselves, how logs are read to their end
and written (``logs``). Start with ``admin.admin.ClusterAdmin`` for questions and ``clients.client`` for the types of
the hot path.
"""
