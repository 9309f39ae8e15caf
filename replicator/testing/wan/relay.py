"""The process that carries packets between two TUN devices; started by ``WanLine``, never by hand.

``python -m replicator.testing.wan.relay CONTROL NEAR FAR``: makes both devices, and reads its orders from
``CONTROL/order.json`` at the start and at every SIGHUP. After each it writes ``CONTROL/report.json`` with the
order's number and the packets so far. The devices go with the process.
"""

import fcntl
import json
import os
import select
import signal
import struct
import sys
import time
from collections import deque
from pathlib import Path

from replicator.testing.wan.line_rules import LineDirection, LineQuality

ORDER, REPORT = "order.json", "report.json"

_TUNSETIFF = 0x400454CA
_TUN_WITHOUT_HEADER = 0x0001 | 0x1000
_LARGEST_PACKET = 65_535
_PACKETS_AT_ONCE = 256
_LONGEST_WAIT_SECONDS = 1.0


class _Side:
    """One device, and the packets on their way to it."""

    def __init__(self, name: str) -> None:
        self.handle = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        fcntl.ioctl(
            self.handle, _TUNSETIFF, struct.pack("16sH", name.encode(), _TUN_WITHOUT_HEADER)
        )
        self.coming: deque[tuple[float, bytes]] = deque()

    def deliver(self, now: float) -> None:
        """Hands over the packets whose time has come."""
        coming = self.coming
        while coming and coming[0][0] <= now:
            try:
                os.write(self.handle, coming.popleft()[1])
            except OSError:
                continue  # the device is not up (yet, or any more): nobody is there

    def take(self, direction: LineDirection, other: "_Side") -> None:
        """Reads what was sent here; it arrives on the other side, or is lost."""
        for _ in range(_PACKETS_AT_ONCE):
            try:
                packet = os.read(self.handle, _LARGEST_PACKET)
            except BlockingIOError:
                return
            at = direction.offer(time.monotonic(), len(packet))
            if at is not None:
                other.coming.append((at, packet))


def run(control: Path, near: str, far: str) -> None:
    """Carries packets until the process is killed."""
    sides = (_Side(near), _Side(far))
    directions = tuple(LineDirection(LineQuality(), number=number) for number in (0, 1))
    ordered = [True]
    signal.signal(signal.SIGHUP, lambda *_: ordered.append(True))
    poller = select.poll()
    for side in sides:
        poller.register(side.handle, select.POLLIN)
    while True:
        if ordered:
            ordered.clear()
            _obey(control, directions)
        now = time.monotonic()
        for side in sides:
            side.deliver(now)
        due = min((side.coming[0][0] for side in sides if side.coming), default=now + 1.0)
        wait_seconds = min(max(0.0, due - time.monotonic()), _LONGEST_WAIT_SECONDS)
        ready = {handle for handle, _ in poller.poll(wait_seconds * 1000)}
        for number, side in enumerate(sides):
            if side.handle in ready:
                side.take(directions[number], sides[1 - number])


def _obey(control: Path, directions: tuple[LineDirection, ...]) -> None:
    order = json.loads((control / ORDER).read_text())
    number, quality = order.pop("number"), LineQuality(**order["quality"])
    if order["change"]:
        for direction in directions:
            direction.change(quality)
    report = {
        "number": number,
        "directions": [
            {"offered": each.offered, "lost": each.lost, "overflowed": each.overflowed}
            for each in directions
        ],
    }
    written = control / f"{REPORT}.new"
    written.write_text(json.dumps(report))
    written.rename(control / REPORT)


if __name__ == "__main__":
    run(Path(sys.argv[1]), sys.argv[2], sys.argv[3])
