"""What the kernel knows of a TCP connection's line: its round trip, and what was lost on it."""

import contextlib
import socket
import struct
import sys
import threading
import time
from dataclasses import dataclass

from replicator.errors import ReplicatorError
from replicator.logins.cluster_login import login_of
from replicator.logins.tls import tls_context
from replicator.policy.capacity.line_settings import NEAR_SECONDS
from replicator.topology.plan import ClusterPlan
from replicator.wire.connection.leader import split_address
from replicator.wire.connection.tcp import open_tcp

_INFO_BYTES = 256
_ROUND_TRIP, _LOST_SEGMENTS, _SENT_SEGMENTS = 68, 100, 156
"""Offsets in Linux' ``struct tcp_info``: smoothed round trip in µs, segments sent again, data segments."""

_CONNECT_SECONDS, _CLUSTER_SECONDS = 1.0, 3.0
_KEPT_SECONDS = 600.0
_CONGESTION = b"bbr"


@dataclass(frozen=True, slots=True)
class LineFacts:
    """One connection so far: round trip, and how many data segments went out and were sent again."""

    round_trip_seconds: float
    segments_sent: int
    segments_repeated: int

    @property
    def loss(self) -> float:
        """Share of the segments that were sent again, 0 to 1; what comes in is not counted."""
        return min(1.0, self.segments_repeated / self.segments_sent) if self.segments_sent else 0.0


def line_facts(connected: socket.socket) -> LineFacts | None:
    """Of an open TCP connection; None where the kernel does not tell (only Linux does)."""
    if sys.platform != "linux":
        return None
    try:
        info = connected.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO_BYTES)
    except OSError:
        return None
    if len(info) < _SENT_SEGMENTS + 4:
        return None

    def at(offset: int) -> int:
        return int(struct.unpack_from("=I", info, offset)[0])

    return LineFacts(at(_ROUND_TRIP) / 1e6, at(_SENT_SEGMENTS), at(_LOST_SEGMENTS))


def suit_to_line(connected: socket.socket) -> None:
    """On a long line, has our side send by BBR where the host offers it: loss then costs little.

    Who sends decides how a connection bears loss, so this helps what we write, not what we fetch.
    """
    facts = line_facts(connected)
    if facts is not None and facts.round_trip_seconds > NEAR_SECONDS:
        with contextlib.suppress(OSError):  # not offered: the kernel's own stays
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, _CONGESTION)


def offers_bbr() -> bool:
    """Whether this process may have a connection of its own send by BBR.

    The kernel has to know it and, for a process without CAP_NET_ADMIN, to list it in
    ``net.ipv4.tcp_allowed_congestion_control``: what is available is not allowed by that.
    """
    if sys.platform != "linux":
        return False
    with socket.socket() as trial:
        try:
            trial.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, _CONGESTION)
        except OSError:
            return False
    return True


def _facts_of_a_new_connection(
    cluster: ClusterPlan, address: tuple[str, int], seconds: float
) -> LineFacts | None:
    context = tls_context(cluster, login_of(cluster).security())
    with open_tcp(address, seconds) as plain:
        if context is None:
            return line_facts(plain)
        # A broker counts a connection that ends before its handshake as a failed login.
        with context.wrap_socket(plain, server_hostname=address[0]) as secured:
            return line_facts(secured)


_lock = threading.Lock()
_known: dict[tuple[str, ...], tuple[float, float]] = {}


def round_trip_seconds(cluster: ClusterPlan) -> float:
    """To the cluster's first bootstrap server that answers, as the kernel timed a connection.

    Asked once in ten minutes; 0 where nothing is known (nobody answers, no Linux), which means near.
    """
    key = cluster.bootstrap_servers
    with _lock:
        known = _known.get(key)
    if known is not None and time.monotonic() - known[0] < _KEPT_SECONDS:
        return known[1]
    seconds = known[1] if known is not None else 0.0
    deadline = time.monotonic() + _CLUSTER_SECONDS
    for server in key:
        # One that swallows everything must leave time for the others.
        left = min(_CONNECT_SECONDS, deadline - time.monotonic())
        if left <= 0:
            break
        try:
            facts = _facts_of_a_new_connection(cluster, split_address(server), left)
        except (OSError, ReplicatorError):
            continue  # the clients that work with the cluster report what is wrong
        seconds = 0.0 if facts is None else facts.round_trip_seconds
        with _lock:
            _known[key] = (time.monotonic(), seconds)
        break
    return seconds
