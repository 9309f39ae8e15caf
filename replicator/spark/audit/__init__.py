"""Room: audit. Decides whether every record of a flow arrived, and how late, by topic and span of time.

Start at ``run.Auditor.round``: what is new since the books (``ledger``), counted by span (``counting``).
"""
