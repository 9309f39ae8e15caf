"""How a drill ends early."""

from replicator.errors import ReplicatorError


class AbortedError(ReplicatorError):
    """An abort condition was met; the fault was cleared."""

    code = "ABORTED"
