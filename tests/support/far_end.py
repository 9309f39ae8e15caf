"""A program at the far end of a long line, and what plain connections to it measure."""

import contextlib
import socket
import statistics
import sys
import time
from pathlib import Path

from replicator.testing import wait_until
from replicator.testing.kit.child_processes import start_child

PROGRAM = Path(__file__).with_name("far_program.py")
CHUNK = bytes(1 << 16)


@contextlib.contextmanager
def far_end(line, directory):
    """Its address, while it runs."""
    output = Path(directory) / "far.log"
    child = start_child([*line.command, sys.executable, PROGRAM, line.far_address], output=output)
    try:
        port = wait_until(
            lambda: output.exists() and output.read_text().strip(),
            timeout_seconds=30,
            describe="it to listen",
        )
        yield line.far_address, int(port)
    finally:
        child.kill()


def connect(address, kind):
    connection = socket.create_connection(address, timeout=60)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.sendall(kind)
    return connection


def round_trip(address, times=9):
    """Median seconds of single bytes, there and back."""
    measured = []
    with connect(address, b"e") as connection:
        for _ in range(times):
            began = time.monotonic()
            connection.sendall(b"x")
            connection.recv(1)
            measured.append(time.monotonic() - began)
    return statistics.median(measured)


def sending_rate(address, seconds, congestion=""):
    """Bytes per second that one connection brings to the far end."""
    with connect(address, b"s") as connection:
        if congestion:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion.encode())
        began = time.monotonic()
        while time.monotonic() - began < seconds:
            connection.sendall(CHUNK)
        connection.shutdown(socket.SHUT_WR)
        size = int.from_bytes(connection.recv(8, socket.MSG_WAITALL), "big")
        return size / (time.monotonic() - began)


def receiving_rate(address, seconds, *, ramp_seconds=0.0):
    """Bytes per second that one connection brings from the far end, after so many seconds of its start."""
    with connect(address, b"g") as connection:
        began = time.monotonic() + ramp_seconds
        size = 0
        while (now := time.monotonic()) - began < seconds:
            got = len(connection.recv(1 << 18))
            size += got if now >= began else 0
        return size / (time.monotonic() - began)
