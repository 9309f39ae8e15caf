"""A long line to a network namespace, where clusters and programs can be far away."""

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from replicator.errors import InputError
from replicator.testing.kit.child_processes import ChildProcess, start_child
from replicator.testing.kit.place import Place
from replicator.testing.kit.waiting import wait_until
from replicator.testing.wan.line_rules import LineQuality
from replicator.testing.wan.relay import ORDER, REPORT

_PREFIX = "replwan"
_READY_SECONDS = 20.0
_TUN = Path("/dev/net/tun")
_NAMESPACES = Path("/run/netns")


@dataclass(frozen=True, slots=True)
class Packets:
    """What one direction has carried: packets offered to it, taken by loss, and without room."""

    offered: int
    lost: int
    overflowed: int


def unavailable() -> str:
    """Why this machine has no long lines; empty where it has."""
    if sys.platform != "linux":
        return "long lines are made of Linux network namespaces"
    if os.geteuid() != 0:
        return "long lines need root: they are made of network namespaces and TUN devices"
    if shutil.which("ip") is None:
        return "long lines need the program `ip` (Debian: apt install iproute2)"
    if not _TUN.exists():
        return f"long lines need {_TUN}, which this machine does not have"
    tried = subprocess.run(  # in a container root alone is not enough
        ["unshare", "--net", "true"], capture_output=True, check=False
    )
    return "" if tried.returncode == 0 else "this machine does not let us make network namespaces"


class WanLine:
    """A line between this namespace and a new one; also a context manager.

    ``LocalCluster(..., place=line.place)`` puts brokers to its far end: clients here reach them over the
    line, the kit's own set-up goes beside it. One process carries the packets; on a core of its own it
    carries about 20,000 packets a second or more, so stay below 20 MB/s with packets of 1500 bytes, and use
    ``mtu=9000`` above (measured: docs/testing.md). How a connection bears loss depends on the size of packets, so keep 1500 there.

    Args:
        quality: delay, loss and rate.
        mtu: largest packet in bytes.
        congestion_control: of every connection over the line that does not choose itself; the kernel's
            default differs between machines, and decides what loss costs.
    """

    def __init__(
        self, quality: LineQuality, *, mtu: int = 1500, congestion_control: str = "cubic"
    ) -> None:
        self._quality = quality
        self._mtu = mtu
        self._congestion = congestion_control
        self._number = 0
        self._name = f"{_PREFIX}{os.getpid()}-{random.SystemRandom().randrange(1 << 20):x}"
        self._devices = ("", "")
        self._net = ""
        self._relay: ChildProcess | None = None
        self._control: Path | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Makes the namespace and starts to carry packets.

        Raises:
            InputError: this machine has no long lines, with the reason.
        """
        reason = unavailable()
        if reason:
            raise InputError(reason, remedy="Run this as root on Linux, outside of a sandbox.")
        _remove_abandoned()
        try:
            self._start()
        except BaseException:
            self.stop()
            raise

    def _start(self) -> None:
        self._control = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}-"))
        tag, self._net = _free_network()
        near, far, beside_near, beside_far = (f"{kind}{tag}" for kind in ("wn", "wf", "wb", "wc"))
        self._write_order(change=True)
        self._relay = start_child(
            [sys.executable, "-m", "replicator.testing.wan.relay", self._control, near, far],
            output=self._control / "relay.log",
        )
        self._wait_for_report()
        _ip("netns", "add", self._name)
        _ip("link", "set", far, "netns", self._name)
        _ip("link", "add", beside_near, "type", "veth", "peer", "name", beside_far)
        _ip("link", "set", beside_far, "netns", self._name)
        self._inside("link", "set", "lo", "up")
        for place, device, host in (
            (_ip, near, self._address(1)),
            (self._inside, far, self.far_address),
            (_ip, beside_near, self._address(5)),
            (self._inside, beside_far, self.address_beside),
        ):
            place("addr", "add", f"{host}/30", "dev", device)
            long_line = device in (near, far)
            place("link", "set", device, *(("mtu", str(self._mtu)) if long_line else ()), "up")
            if long_line:
                route = ("dev", device, "proto", "kernel", "scope", "link", "src", host)
                place("route", "replace", f"{self._net}.0/30", *route, "congctl", self._congestion)

    def stop(self) -> None:
        """Ends it; whatever still runs at its far end is cut off. A second call does nothing."""
        relay, self._relay = self._relay, None
        if relay is not None:
            relay.kill()
        if (_NAMESPACES / self._name).exists():
            with contextlib.suppress(InputError):
                _ip("netns", "delete", self._name)
        if self._control is not None:
            shutil.rmtree(self._control, ignore_errors=True)
            self._control = None

    @property
    def far_address(self) -> str:
        """Of the far end, over the line."""
        return self._address(2)

    @property
    def address_beside(self) -> str:
        """Of the far end, beside the line: neither slow nor lossy."""
        return self._address(6)

    @property
    def place(self) -> Place:
        """The far end, for clusters."""
        return Place(
            client_host=self.far_address, internal_host=self.address_beside, command=self.command
        )

    @property
    def command(self) -> tuple[str, ...]:
        """What stands before a command that is to run at the far end."""
        return ("ip", "netns", "exec", self._name)

    def change(self, quality: LineQuality) -> None:
        """Another line from now on; returns when it is in force. Packets under way keep their times."""
        self._quality = quality
        self._write_order(change=True)
        self._ask()

    def packets(self) -> tuple[Packets, Packets]:
        """What went there, and what came back."""
        self._write_order(change=False)
        there, back = (Packets(**each) for each in self._ask())
        return there, back

    def _ask(self) -> list[dict[str, int]]:
        if self._relay is None:
            raise InputError("the line was not started")
        self._relay.signal(signal.SIGHUP)
        return self._wait_for_report()

    def _wait_for_report(self) -> list[dict[str, int]]:
        control, relay = self._control, self._relay
        if control is None or relay is None:
            raise InputError("the line was not started")

        def report() -> list[dict[str, int]] | None:
            log = control / "relay.log"
            if relay.exit_code() is not None:
                raise InputError(f"the relay ended: {log.read_text()[-500:]}")
            try:
                told = json.loads((control / REPORT).read_text())
            except FileNotFoundError:
                return None
            return list(told["directions"]) if told["number"] == self._number else None

        found = wait_until(
            report,
            timeout_seconds=_READY_SECONDS,
            describe="the relay to answer",
            interval_seconds=0.01,
        )
        return found or []

    def _write_order(self, *, change: bool) -> None:
        if self._control is None:
            raise InputError("the line was not started")
        self._number += 1
        order = {"number": self._number, "change": change, "quality": asdict(self._quality)}
        written = self._control / f"{ORDER}.new"
        written.write_text(json.dumps(order))
        written.rename(self._control / ORDER)

    def _inside(self, *words: str) -> str:
        return _ip("-n", self._name, *words)

    def _address(self, host: int) -> str:
        return f"{self._net}.{host}"


def _ip(*words: str) -> str:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise InputError(f"`ip {' '.join(words)}` was refused: {done.stderr.strip()}")
    return done.stdout


def _free_network() -> tuple[str, str]:
    """A tag for names, and the first three bytes of addresses (RFC 2544's, for measurements)."""
    draw = random.SystemRandom()
    taken = _ip("-o", "addr")
    while True:
        number = draw.randrange(512)
        net = f"198.{18 + number // 256}.{number % 256}"
        if f" {net}." not in taken:
            return f"{os.getpid() % 100_000:x}{number:x}", net


def _remove_abandoned() -> None:
    """Namespaces of processes that were killed before they could tidy up."""
    for path in _NAMESPACES.glob(f"{_PREFIX}*-*"):
        owner = path.name.removeprefix(_PREFIX).split("-")[0]
        if owner.isdecimal() and not Path(f"/proc/{owner}").exists():
            with contextlib.suppress(InputError):
                _ip("netns", "delete", path.name)
