"""Everything asked of a cluster through confluent-kafka, and the one error tree its errors map to.

Decided here: settings of clients, which errors pass by themselves, how logs are read to their end
(``compacted_log``, ``checkpoint_log``) and written (``log_writer``, ``transactions``). Start with
``admin.ClusterAdmin`` for questions and ``client`` for the types of the hot path.
"""
