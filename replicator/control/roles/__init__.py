"""The role of each link as the control topics of its clusters say it, once or continuously.

Decides which flows of a link run; how a role changes is decided in ``replicator.failover``.
Begin with ``read`` (for one command), then ``watch`` (for a worker).
"""
