"""Room: stream. Whole flows run by Spark instead of workers, as a Structured Streaming query.

``runtime`` decides which flows those are, ``copy_source`` which ranges a micro-batch copies. Start at
``driver.FlowStream``.
"""
