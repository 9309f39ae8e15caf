"""Whether a set of running workers does its work: all ready, and a canary of every link comes through.

Pure: what workers answered goes in, a verdict comes out. `replicator check` asks; `helm test` runs that.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from replicator.observability.catalogue import metric

Labels = Mapping[str, str]
"""Samples of one scrape: full name, labels, value."""


@dataclass(frozen=True, slots=True)
class WorkerAnswer:
    """What one worker answered: its address, why it is not ready (nothing when it is), its samples."""

    address: str
    reasons: tuple[str, ...]
    samples: tuple[tuple[str, Labels, float], ...] = ()


@dataclass(frozen=True, slots=True)
class LinkHealth:
    """One flow of one link: whether a canary came through since the first look, and how many did not."""

    link: str
    flow: str
    came: int
    lost: int
    paused: bool

    @property
    def proven(self) -> bool:
        """A paused flow carries no canary, and nobody expects one."""
        return self.paused or (self.came > 0 and self.lost == 0)


@dataclass(frozen=True, slots=True)
class ReleaseHealth:
    """The verdict so far; ``waiting_for`` is empty when everything is proven."""

    workers: tuple[WorkerAnswer, ...]
    links: tuple[LinkHealth, ...]

    @property
    def lost(self) -> tuple[LinkHealth, ...]:
        """Links that lost a canary while we looked: waiting does not help."""
        return tuple(link for link in self.links if link.lost)

    @property
    def waiting_for(self) -> tuple[str, ...]:
        """What is not proven yet, a line each."""
        lines = [
            f"{worker.address} is not ready: {'; '.join(worker.reasons)}"
            for worker in self.workers
            if worker.reasons
        ]
        if not self.workers:
            lines.append("no worker answers")
        elif not self.links:
            lines.append("no worker serves a flow")
        lines += [
            f"{link.flow} {link.link}: {link.lost} canaries lost"
            if link.lost
            else f"{link.flow} {link.link}: no canary came through yet"
            for link in self.links
            if not link.proven
        ]
        return tuple(lines)


def release_health(first: Sequence[WorkerAnswer], latest: Sequence[WorkerAnswer]) -> ReleaseHealth:
    """Compares the first answers of the workers with their latest.

    A canary counts on the worker that saw it: controllers may move, and a worker that came later
    begins at nothing.
    """
    state = metric("flow_state").full_name
    came = metric("canary_roundtrip_seconds").full_name + "_count"
    lost = metric("canary_lost_total").full_name
    before = {
        (worker.address, name, labels.get("link"), labels.get("flow")): value
        for worker in first
        for name, labels, value in worker.samples
        if name in {came, lost}
    }
    counted: dict[tuple[str, str], list[int]] = {}
    paused: set[tuple[str, str]] = set()
    for worker in latest:
        for name, labels, value in worker.samples:
            key = (labels.get("link", ""), labels.get("flow", ""))
            if name == state:
                counted.setdefault(key, [0, 0])
                if labels.get("state") == "paused" and value:
                    paused.add(key)
            elif name in {came, lost}:
                grown = int(value - before.get((worker.address, name, *key), 0.0))
                counted.setdefault(key, [0, 0])[name == lost] += max(0, grown)
    links = tuple(
        LinkHealth(link, flow, came=numbers[0], lost=numbers[1], paused=(link, flow) in paused)
        for (link, flow), numbers in sorted(counted.items())
    )
    return ReleaseHealth(workers=tuple(latest), links=links)
