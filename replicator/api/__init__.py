"""The HTTP face of a worker: who is let in (``access``), what is answered (``routes``), how it listens (``server``).

``console`` holds the files of the page, ``asking`` is the client side of the probes. Start at ``routes.app``, then
at ``routes.provider`` for what the worker behind it has to answer.
"""
