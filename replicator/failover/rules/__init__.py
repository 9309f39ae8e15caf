"""Rules of role changes, all pure: what is decided from facts and records alone.

Order of the steps and when each may run, direction, lock, next role, loss, witness, and the request and
report types. Start at ``machine.decide``.
"""
