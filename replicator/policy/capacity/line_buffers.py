"""What the socket buffers of a broker do to a long line. Pure.

A TCP connection carries at most one buffer per round trip. Kafka asks the kernel for 100 KB where
nothing is configured, which also switches off that the kernel sizes buffers by itself; -1 leaves them to it.
"""

from dataclasses import dataclass

from replicator.policy.capacity.line_settings import ASSUMED_BYTES_PER_SECOND, NEAR_SECONDS

SEND, RECEIVE = "socket.send.buffer.bytes", "socket.receive.buffer.bytes"
_KERNELS = -1


@dataclass(frozen=True, slots=True)
class BrokerBuffers:
    """As configured, in bytes; -1 are the kernel's."""

    send_bytes: int
    receive_bytes: int


def buffers_of(settings: dict[str, str | None]) -> BrokerBuffers | None:
    """From a broker's settings; None where it does not show them."""
    try:
        return BrokerBuffers(int(settings[SEND] or ""), int(settings[RECEIVE] or ""))
    except (KeyError, ValueError):
        return None


def buffers_advice(buffers: BrokerBuffers, round_trip_seconds: float) -> list[str]:
    """A sentence for each buffer that bounds a connection over a line of this length below what lines carry."""
    if round_trip_seconds <= NEAR_SECONDS:
        return []
    wanted = round(round_trip_seconds * ASSUMED_BYTES_PER_SECOND)
    return [
        f"its brokers' {name} of {size} bounds {what} to about {size / round_trip_seconds / 1e6:.1f} MB/s per connection "
        f"at {round_trip_seconds * 1000:.0f} ms: set it to -1 (the kernel sizes it), or to {wanted} or more, and restart the brokers"
        for name, size, what in (
            (SEND, buffers.send_bytes, "what is read"),
            (RECEIVE, buffers.receive_bytes, "what is written"),
        )
        if size != _KERNELS and size < wanted
    ]
