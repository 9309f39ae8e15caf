"""A finished run, made by hand, so that reports can be made without a broker."""

from types import SimpleNamespace

import pytest

from replicator.drill.execution.execution import Executed
from replicator.drill.execution.settling import SettledCopies
from replicator.drill.execution.steps import Step
from replicator.drill.file.load import load_drill_text
from replicator.drill.report.metrics import Seen as SeenRun
from replicator.drill.report.metrics import measure
from replicator.drill.report.report import Run, make_report
from replicator.testing.checker.check import check
from replicator.testing.checker.history import (
    Committed,
    Completed,
    Delivered,
    Flow,
    GroupStarted,
    Scanned,
    Seen,
    Sent,
)
from replicator.testing.checker.routes import identity
from replicator.testing.workload.watcher import Arrival

DRILL = """\
apiVersion: replicator/v1
kind: Drill
metadata: {name: weekly}
spec:
  link: orders-dr
  kind: network-cut
  limits: {maxRtoSeconds: 5, maxLostRecords: 0, maxReread: 0}
"""
GROUP = "readers"


def events_of(count, *, lost=(), skipped=(), reread=()):
    """One write a second, copied at once, read at once; some of it goes wrong."""
    found = [Flow("east", "west", relay=False), GroupStarted(GROUP)]
    kept = []
    for number in range(count):
        at = 1000.0 + number
        fields = {"key": "k", "value": f"v{number}", "headers": "", "timestamp_ms": int(at * 1000)}
        found.append(
            Sent(f"id-{number}", "east", "t", 0, transaction=None, epoch=None, at=at, **fields)
        )
        found.append(Completed(f"id-{number}", "ok", 0, number, at))
        found.append(Seen("final", "east", "t", 0, number, f"id-{number}", hops="", **fields))
        if number not in lost:
            place = len(kept)
            kept.append(number)
            hops = f"east/t/0/{number}"
            found.append(Seen("final", "west", "t", 0, place, f"id-{number}", hops=hops, **fields))
            if number not in skipped:
                found.append(Delivered(GROUP, "west", "t", 0, place, at + 0.1))
                found.append(Committed(GROUP, "west", "t", 0, place + 1))
    found += [Delivered(GROUP, "west", "t", 0, kept.index(number), 2000.0) for number in reread]
    found.append(Scanned("final", "east", "t", 0, 0, count))
    found.append(Scanned("final", "west", "t", 0, 0, len(kept)))
    return found


@pytest.fixture
def report_of():
    """Makes the report of a run: ``report_of(silence=(1010, 1014), lost={3})``."""

    def make(
        *, silence=(1010.0, 1013.0), trouble="", previous="", number=1, name="weekly", link="orders-dr",
        aborted=None, **wrong,
    ):  # fmt: skip
        drill = load_drill_text(DRILL.replace("weekly", name), file="d.yaml").drill
        events = events_of(30, **wrong)
        arrivals = [
            Arrival(0, at, at) for at in range(1000, 1030) if not silence[0] < at < silence[1]
        ]
        if silence[1] == float("inf"):
            arrivals = [each for each in arrivals if each.at <= silence[0]]
        scene = SimpleNamespace(
            plan=SimpleNamespace(topology="shop", hash="p" * 64),
            pair=SimpleNamespace(id="east->west"),
            target=SimpleNamespace(name="west"),
            link=link,
            naming=identity,
            group=GROUP,
            real=False,
            fenced_by_word=False,
            shared=False,
        )
        executed = Executed(
            began_at=1000.0, fault_at=1010.0, in_force_at=1010.1, fault_cleared_at=1012.0,
            ended_at=1030.0, trouble=trouble, aborted=aborted, marks=[(1010.0, "network cut")],
        )  # fmt: skip
        settled = SettledCopies(events, check(events), "")
        seen = SeenRun(drill, scene, executed, settled, arrivals, frozenset({0}))
        run = Run(
            id=f"20260101-000000-{name}-{number:04d}",
            by="tester",
            drill=drill,
            scene=scene,
            executed=executed,
            settled=settled,
            metrics=measure(seen),
            steps=(
                Step("set-up", 990.0, 10.0, "", True, "drill"),
                Step("steady state", 1000.0, 10.0, "30 writes", True, "drill"),
                Step("network cut", 1010.0, 0.1, "gone", True, "fault"),
            ),
            arrivals=arrivals,
        )
        return make_report(run, previous=previous, number=number)

    return make
