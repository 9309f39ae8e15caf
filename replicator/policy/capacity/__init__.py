"""How fast a flow copies, and with what: lanes, budgets, memory and lines.

Decided here: which lane owns a partition, what a lane may hold and read, what a long line asks of clients and brokers.
Start with line_settings.py (what follows from a round trip) and memory_shares.py (what follows from a limit).
"""
