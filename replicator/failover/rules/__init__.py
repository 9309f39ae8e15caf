"""Rules of role changes, all pure: what is decided from facts and records alone.

Order of the steps and when each may run, direction, lock, next role, leftovers, witness, and the
request's type. Start at ``machine.decide``.
"""
