"""The few requests that confluent-kafka cannot make, spoken over sockets of our own.

Decided here: which protocol version is used, and how a broker's answer becomes our error. Start with
``connection.connection.BrokerConnection``; ``connection.protocol`` is the only import of kafka-python.
"""
