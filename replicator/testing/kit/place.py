"""Where the brokers of a cluster run, as seen from this process."""

from dataclasses import dataclass

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Place:
    """Addresses and the way to start programs there; as it is, this machine's loopback.

    Attributes:
        client_host: the address that clients reach brokers at.
        internal_host: the address for set-up by the kit, never slowed or lost.
        command: stands before every command that is to run there.
    """

    client_host: str = LOOPBACK
    internal_host: str = LOOPBACK
    command: tuple[str, ...] = ()


HERE = Place()
