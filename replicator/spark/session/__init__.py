"""Room: session. The one Spark session of a command: its settings, its start and its end.

``settings`` decides which setting wins, ``java`` whether Spark can run here. Start at
``session.spark_session``.
"""
