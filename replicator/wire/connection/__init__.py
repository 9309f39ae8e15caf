"""A connection to one broker, its login, and the way to a partition's leader.

Decided here: time limits, and how an error code becomes our error. Start with ``connection.BrokerConnection``.
"""
