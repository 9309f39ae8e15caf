"""Room: source. The data source ``replicator-kafka``: clusters of a topology as DataFrames and streams.

``options`` decides what a user asked for, ``planning`` which offsets that means. Start at
``data_source.KafkaDataSource``; ``scan`` reads the records.
"""
