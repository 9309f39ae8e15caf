"""How a drill ends early."""

from replicator.errors import ReplicatorError


class AbortedError(ReplicatorError):
    """A condition to abort was met; what had been begun was ended."""

    code = "ABORTED"
