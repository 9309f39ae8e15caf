"""The report of a drill: plain data, as it is stored, shown and checked. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from replicator import __version__
from replicator.clock import json_time
from replicator.control.records.drill_records import DrillRecord
from replicator.drill.environment.environment import Scene
from replicator.drill.execution.execution import Executed
from replicator.drill.execution.settling import SettledCopies
from replicator.drill.execution.steps import Step
from replicator.drill.file.plan import Drill
from replicator.drill.report.measure import Silence, per_bucket, read_times, write_times
from replicator.drill.report.verdict import Check, DrillMetrics, StatedLoss, checks, verdict
from replicator.testing.workload.watcher import Arrival

VERSION = 1
BUCKET_SECONDS = 0.5
_MOST_BUCKETS = 1_200

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Run:
    """Everything that a report is made of.

    Attributes:
        id: of the report.
        by: who ran it.
        drill, scene, executed, settled: the plan, the place, what happened and what was found.
        metrics: what was measured.
        steps: of the drill, the fault and the role change.
        arrivals: of copies on the other cluster.
    """

    id: str
    by: str
    drill: Drill
    scene: Scene
    executed: Executed
    settled: SettledCopies
    metrics: DrillMetrics
    steps: Sequence[Step]
    arrivals: Sequence[Arrival]


def make_report(run: Run, *, previous: str, number: int) -> Json:
    """The report, less its own checksum.

    Args:
        run: the drill.
        previous: checksum of the report before it in the same directory; empty for the first.
        number: its place in the chain, from 1.
    """
    drill, executed, metrics = run.drill, run.executed, run.metrics
    trouble = "; ".join(filter(None, (executed.trouble, run.settled.trouble)))
    transition = executed.transition
    stated = transition and StatedLoss(transition.loss.records, transition.loss.exact)
    lines = checks(
        drill.limits, metrics, run.settled.report, trouble=trouble, stated=stated or None
    )
    began = min((step.at for step in run.steps), default=executed.began_at)
    return {
        "v": VERSION,
        "id": run.id,
        "number": number,
        "name": drill.name,
        "kind": drill.kind,
        "link": drill.link,
        "flow": str(run.scene.pair.id),
        "mode": "real" if run.scene.real else "sandbox",
        "topology": run.scene.plan.topology,
        "at": json_time(round(began * 1000)),
        "by": run.by,
        "verdict": verdict(lines),
        "aborted": executed.aborted,
        "rtoSeconds": _seconds(metrics.rto),
        "lostRecords": metrics.loss.records,
        "lostSeconds": round(metrics.loss.seconds, 3),
        "rereadRecords": metrics.reread,
        "skippedRecords": metrics.skipped,
        "interruptions": {
            "writesSeconds": _seconds(metrics.writes),
            "readsSeconds": _seconds(metrics.reads),
            "copiesSeconds": _seconds(metrics.copies),
        },
        "lostPartitions": dict(metrics.loss.partitions),
        "groups": [
            {
                "group": each.group,
                "delivered": each.delivered,
                "rereadRecords": each.reread,
                "skippedRecords": each.skipped,
            }
            for each in metrics.groups
        ],
        "limits": {
            "maxRtoSeconds": drill.limits.max_rto_seconds,
            "maxLostRecords": drill.limits.max_lost_records,
            "maxReread": drill.limits.max_reread,
        },
        "checks": [_check(line) for line in lines],
        "history": _history(run.settled),
        "transition": None if executed.transition is None else executed.transition.as_json(),
        "steps": [_step(step, began) for step in run.steps],
        "marks": [{"at": round(at - began, 3), "label": label} for at, label in executed.marks],
        "interrupted": _window(metrics.rto, began),
        "timeline": _timeline(run, began),
        "load": asdict(drill.load),
        "fault": asdict(drill.fault),
        "planHash": run.scene.plan.hash,
        "drillHash": drill.hash,
        "version": __version__,
        "previous": previous,
    }


def digest(report: Json) -> DrillRecord:
    """What the control topics keep of a stored report."""
    problems = [each["detail"] for each in report["checks"] if not each["ok"] and each["detail"]]
    return DrillRecord(
        id=report["id"],
        link=report["link"],
        name=report["name"],
        drill=report["kind"],
        flow=report["flow"],
        mode=report["mode"],
        verdict=report["verdict"],
        rto_seconds=report["rtoSeconds"],
        lost_records=report["lostRecords"],
        lost_seconds=report["lostSeconds"],
        reread_records=report["rereadRecords"],
        skipped_records=report["skippedRecords"],
        number=report["number"],
        checksum=report["checksum"],
        previous=report["previous"],
        plan_hash=report["planHash"],
        drill_hash=report["drillHash"],
        at_ms=round(datetime.fromisoformat(report["at"]).timestamp() * 1000),
        by=report["by"],
        trouble="; ".join(problems),
    )


def _check(line: Check) -> Json:
    return {
        "check": line.name,
        "measured": line.measured,
        "limit": line.limit,
        "ok": line.ok,
        "detail": line.detail,
    }


def _step(step: Step, began: float) -> Json:
    return {
        "step": step.name,
        "at": round(step.at - began, 3),
        "seconds": round(step.seconds, 3),
        "result": step.result,
        "ok": step.ok,
        "part": step.part,
    }


def _history(settled: SettledCopies) -> Json:
    report = settled.report
    return {
        "clean": report.clean,
        "counts": dict(report.counts),
        "findings": [
            {
                "anomaly": str(each.anomaly),
                "count": each.count,
                "tolerated": each.tolerated,
                "examples": list(each.examples),
            }
            for each in report.findings
        ],
    }


def _timeline(run: Run, began: float) -> Json:
    """How much was written, copied and read in each moment, by the applications' own clocks."""
    end = max(run.executed.ended_at, began + BUCKET_SECONDS)
    bucket = max(BUCKET_SECONDS, (end - began) / _MOST_BUCKETS)
    series: Mapping[str, Iterable[float]] = {
        "writes": write_times(run.settled.events),
        # Later records on the target were written there: it is active.
        "copies": [a.at for a in run.arrivals if a.at < (run.executed.promoted_at or end + 1)],
        "reads": read_times(run.settled.events, run.scene.group),
    }
    return {
        "bucketSeconds": round(bucket, 3),
        **{
            name: per_bucket(times, start=began, end=end, bucket_seconds=bucket)
            for name, times in series.items()
        },
    }


def _seconds(silence: Silence | None) -> float | None:
    return None if silence is None else round(silence.seconds, 3)


def _window(silence: Silence | None, began: float) -> Json | None:
    if silence is None:
        return None
    return {"from": round(silence.began_at - began, 3), "to": round(silence.ended_at - began, 3)}
