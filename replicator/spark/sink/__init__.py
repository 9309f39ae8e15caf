"""Room: sink. DataFrames and streams written to Kafka with ``replicator-kafka``, each row exactly once.

Decided here: which columns make a record, and that a task that is run again writes nothing twice.
Start with ``write_task``; ``options`` says what a writer may be told.
"""
