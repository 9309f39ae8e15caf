"""Status objects of many shapes for the console, and a worker that answers with them."""

import copy
import itertools
import time
from typing import Any

from replicator.observability.health import HealthVerdict

CITIES = ("paris", "oslo", "rome", "tokyo", "lima", "cairo", "delhi", "sydney")
Json = dict[str, Any]


def flow(source: str, target: str, link: str, **fields: Any) -> Json:
    partitions = [
        {
            "partition": number, "state": "replicating", "sourceStart": 0, "sourceEnd": 1_200,
            "position": 1_197, "targetEnd": 1_300, "lagRecords": 3, "lagSeconds": 0.1,
        }
        for number in range(4)
    ]  # fmt: skip
    return {
        "flow": f"{source}->{target}", "link": link, "source": source, "target": target,
        "state": "replicating", "reason": "4 of 4 partitions moving", "lagRecords": 12,
        "lagSeconds": 0.1, "recordsPerSecond": 850.0, "bytesPerSecond": 408_000.0,
        "workers": [{"id": "worker-a", "lanes": [0, 1]}], "problems": [],
        "topics": [{"source": "orders", "target": "orders", "partitions": partitions}],
        "canary": {"roundTripSeconds": 0.118, "ageSeconds": 0.5, "lost": 0}, **fields,
    }  # fmt: skip


def link(name: str, shape: str, clusters: tuple[str, ...], **fields: Any) -> Json:
    return {
        "link": name, "shape": shape, "clusters": list(clusters), "active": None, "epoch": 0,
        "state": "mirroring", "since": None, "by": "", "reason": "", "problems": [], **fields,
    }  # fmt: skip


def status(flows: list[Json], links: list[Json]) -> Json:
    return {
        "topology": "retail", "planHash": "9f2c41d07b6c", "at": "2026-01-01T00:00:00Z",
        "flows": flows, "links": links,
    }  # fmt: skip


def pair(**fields: Any) -> Json:
    dr = link("orders-dr", "active-passive", ("east", "west"), active="east", epoch=3)
    return status([flow("east", "west", "orders-dr", **fields)], [dr])


def mesh(count: int) -> Json:
    names = CITIES[:count]
    flows = [flow(*ends, "profiles") for ends in itertools.permutations(names, 2)]
    return status(flows, [link("profiles", "active-active", names)])


def star(spokes: int, *, both: bool = False) -> Json:
    names = CITIES[:spokes]
    flows = [flow(name, "central", "telemetry") for name in names]
    if both:
        flows += [flow("central", name, "telemetry") for name in names]
    return status(flows, [link("telemetry", "hub-and-spoke", ("central", *names))])


def mixed() -> Json:
    """Spokes of one link that are a pair in another."""
    first = star(3)
    dr = link("dr", "active-passive", ("paris", "oslo"), active="paris")
    there, back = flow("paris", "oslo", "dr"), flow("oslo", "paris", "b", state="paused")
    both = link("b", "active-active", ("paris", "oslo"))
    return status([*first["flows"], there, back], [*first["links"], dr, both])


def three_regions() -> Json:
    """An active-passive and an active-active link over three clusters: the documentation's picture."""
    names = ("east", "west", "north")
    dr = link("orders-dr", "active-passive", names[:2], active="east", epoch=3)
    both = link("profiles", "active-active", (names[0], names[2]))
    flows = [
        flow("east", "west", "orders-dr"),
        flow("east", "north", "profiles", recordsPerSecond=310.0, bytesPerSecond=124_000.0),
        flow(
            "north", "east", "profiles", state="paused", reason="paused by alice", canary=None,
            recordsPerSecond=0.0, bytesPerSecond=0.0, lagRecords=840, lagSeconds=6.4,
        ),
    ]  # fmt: skip
    return status(flows, [dr, both])


SHAPES = {
    "pair": pair(), "mixed": mixed(), "star-2": star(2), "star-3": star(3),
    "star-3-both": star(3, both=True), "star-7": star(7), "star-7-both": star(7, both=True),
    **{f"mesh-{count}": mesh(count) for count in range(2, 9)},
}  # fmt: skip

GROUPS: Json = {
    "groups": [
        {
            "group": "billing", "flow": "east->west", "link": "orders-dr", "state": "synced",
            "reason": "", "lastSyncedAgeSeconds": 2.0,
            "partitions": [
                {
                    "topic": "orders", "partition": number, "targetTopic": "orders",
                    "sourceOffset": 1_000, "targetOffset": 1_100, "translatedOffset": 1_100,
                    "sourceLagRecords": 7, "targetLagRecords": 9, "sourceLagSeconds": 0.2,
                    "targetLagSeconds": 0.3, "grade": "exact", "recordsReread": 0,
                    "refused": None, "reason": "",
                }
                for number in range(4)
            ],
        }
    ],
    "problems": [],
}  # fmt: skip


def history() -> Json:
    at = round(time.time() * 1000)
    drill = {
        "id": "20260101-weekly-a1b2", "kind": "drill", "drill": "failover", "name": "weekly",
        "link": "orders-dr", "flow": "east->west", "mode": "real", "verdict": "pass",
        "rtoSeconds": 7.4, "lostRecords": 12, "lostSeconds": 0.2, "rereadRecords": 40,
        "skippedRecords": 0, "at": at - 3_600_000, "by": "cron", "checksum": "884f3eee014ba02b",
        "previous": "", "number": 4, "trouble": "",
    }  # fmt: skip
    change = {
        "id": "t-1", "kind": "switchover", "link": "orders-dr", "from": "west", "to": "east",
        "epoch": 3, "outcome": "done", "reason": "", "at": at - 90_000_000, "by": "alice",
        "checks": [{"check": "lag", "ok": True, "detail": "12 records", "remedy": ""}],
        "steps": [{"step": "fence", "seconds": 0.4, "result": "deny WRITE", "evidence": {}}],
        "loss": {"records": 0, "seconds": 0, "exact": True, "topics": []}, "rtoSeconds": 2.9,
        "fencing": "acl",
    }  # fmt: skip
    return {"entries": [change, drill]}


class PageWorker:
    """Answers the console with whatever a test wants it to see."""

    def __init__(self) -> None:
        self.shown: Json = pair()
        self.groups_shown: Json = copy.deepcopy(GROUPS)
        self.history_shown: Json = history()
        self.failure: Exception | None = None

    def live(self) -> HealthVerdict:
        return HealthVerdict(ok=True)

    def ready(self) -> HealthVerdict:
        return HealthVerdict(ok=True)

    async def status(self) -> Json:
        return self.shown

    async def topology(self) -> Json:
        return {"topology": "retail", "clusters": [], "links": []}

    async def history(self) -> Json:
        if self.failure is not None:
            raise self.failure
        return self.history_shown

    async def groups(self) -> Json:
        if self.failure is not None:
            raise self.failure
        return self.groups_shown

    async def metrics(self) -> bytes:
        return b""

    async def pause(self, target: object) -> Json:
        return {}

    async def resume(self, target: object, *, accept_gap: bool) -> Json:
        return {}
