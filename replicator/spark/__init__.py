"""Room: spark. Everything that touches history runs here, through PySpark; the only room that knows it.

Nothing of this room is imported before one of its commands runs, so the rest of the program works
without the ``spark`` extra.
"""
