"""Verbs that run on Spark: copies of history, comparisons, books, archives and streams.

Decided here: which options a verb hands to Spark (``spark_options``) and the line it ends with (``closing``).
"""
