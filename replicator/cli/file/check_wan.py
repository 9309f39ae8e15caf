"""`check --wan`: how long, lossy and fast the lines to the clusters are, and where workers should stand."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from replicator.cli.options import Output
from replicator.cli.output import render, say

if TYPE_CHECKING:
    from replicator.errors import ReplicatorError
    from replicator.topology.plan import Plan
    from replicator.wire.probes.line_probe import LineMeasured


def check_lines(file: Path | None, output: Output) -> bool:
    """Measures from this host to every cluster of the topology and prints it; whether all answered.

    Raises:
        InputError: the topology file cannot be used.
    """
    from replicator.errors import ReplicatorError
    from replicator.topology.file.load import require_plan, topology_path
    from replicator.wire.probes.line_probe import measure_line, offers_bbr

    plan = require_plan(topology_path(file))
    measured: dict[str, LineMeasured | ReplicatorError] = {}
    for cluster in plan.clusters:
        say(f"measuring the line to {cluster.alias}")
        try:
            measured[cluster.alias] = measure_line(cluster)
        except ReplicatorError as error:
            measured[cluster.alias] = error
    result = lines_result(plan, measured, bbr=offers_bbr())
    render(result, output, text=lines_text(result))
    return bool(result["ok"])


def lines_result(
    plan: "Plan", measured: "Mapping[str, LineMeasured | ReplicatorError]", *, bbr: bool
) -> dict[str, Any]:
    """The result as data: clusters, and advice by flow where both of its clusters answered."""
    from replicator.errors import ReplicatorError
    from replicator.policy.worker_place import Line, place_of_worker

    clusters: list[dict[str, Any]] = []
    lines: dict[str, Line] = {}
    for alias, found in measured.items():
        if isinstance(found, ReplicatorError):
            clusters.append({"cluster": alias, "problem": found.paragraph()})
            continue
        lines[alias] = Line(found.round_trip_seconds, found.loss)
        clusters.append(
            {
                "cluster": alias,
                "address": found.address,
                "roundTripMs": round(found.round_trip_seconds * 1000, 2),
                "loss": round(found.loss, 5),
                "bytesPerSecond": round(found.bytes_per_second),
                "problem": None,
            }
        )
    flows = []
    for flow in plan.flows:
        if flow.source in lines and flow.target in lines:
            place = place_of_worker(lines[flow.source], lines[flow.target], bbr=bbr)
            flows.append({"flow": flow.id, "advice": place.advice, "reason": place.reason})
    ok = len(lines) == len(measured)
    return {"ok": ok, "bbr": bbr, "clusters": clusters, "flows": flows}


def lines_text(result: Mapping[str, Any]) -> str:
    """The same for people."""
    lines = [
        f"{each['cluster']}  {each['problem']}"
        if each["problem"]
        else f"{each['cluster']}  {each['address']}  round trip {each['roundTripMs']:g} ms  "
        f"loss {each['loss']:.2%} of what we send  {each['bytesPerSecond'] / 1e6:.1f} MB/s to it"
        for each in result["clusters"]
    ]
    words = {"stay": "stay here", "near-target": "stand near the target",
             "near-source": "stand near the source"}  # fmt: skip
    lines += [
        f"{each['flow']}  {words[each['advice']]}: {each['reason']}." for each in result["flows"]
    ]
    return "\n".join(lines)
