"""What keeps one partition from being read or written at present: the form in which it travels."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PartitionFailure:
    """A failure that ends by itself or by an operator's help; nothing was decided about the partition.

    ``code`` is a problem code, ``side`` the cluster where it happened (``source`` or ``target``).
    ``since_ms`` is when the partition came to stand, not when it failed last.
    """

    code: str
    side: str
    detail: str
    remedy: str
    since_ms: int
