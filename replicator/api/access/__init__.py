"""Who may read and change over HTTP.

Decided here: which requests are let in (``admission``, pure), before any body is read. Start there; ``guard`` is its shell
in front of the routes, ``token`` reads the bearer token.
"""
