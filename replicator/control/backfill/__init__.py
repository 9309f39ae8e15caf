"""History that Spark copies: which ranges, when lanes hand partitions over, and when they get them back.

Decided here: the ranges of a bulk copy, their records in the control topic, and how long these are kept.
Start reading in ``handover``; ``ranges`` is the pure plan, ``spark_process`` runs the copy for a worker.
"""
