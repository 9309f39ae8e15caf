"""Room: spark. Everything about history rather than the live tail; the only room that knows PySpark.

No module of this room is imported before one of its commands runs, so the rest of the program works
without the ``spark`` extra. Start at ``session``, then at the package of the command.
"""
