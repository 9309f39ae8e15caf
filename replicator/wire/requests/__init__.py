"""One request a file, each with the question it answers.

Decided here: which version of a request is spoken and what its answer means. Start with ``log_ends``.
"""
