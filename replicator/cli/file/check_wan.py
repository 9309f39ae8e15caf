"""`check --wan`: how long, lossy and fast the lines to the clusters are, and where workers should stand."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from replicator.cli.options import Output
from replicator.cli.output import render, say

if TYPE_CHECKING:
    from replicator.errors import ReplicatorError
    from replicator.policy.capacity.line_buffers import BrokerBuffers
    from replicator.topology.plan import ClusterPlan, Plan
    from replicator.wire.probes.line_probe import LineMeasured

_UNREADABLE = (
    "the socket buffers of its brokers could not be read (DescribeConfigs on the cluster): Kafka's default of 102400 bytes "
    "bounds every connection to one buffer per round trip, -1 leaves them to the kernel"
)


def check_lines(file: Path | None, output: Output) -> bool:
    """Measures from this host to every cluster of the topology and prints it; whether all answered.

    Raises:
        InputError: the topology file cannot be used.
    """
    from replicator.errors import ReplicatorError
    from replicator.topology.file.load import require_plan, topology_path
    from replicator.wire.probes.line import offers_bbr
    from replicator.wire.probes.line_probe import measure_line

    plan = require_plan(topology_path(file))
    measured: dict[str, LineMeasured | ReplicatorError] = {}
    buffers: dict[str, BrokerBuffers | None] = {}
    for cluster in plan.clusters:
        say(f"measuring the line to {cluster.alias}")
        try:
            measured[cluster.alias] = measure_line(cluster)
        except ReplicatorError as error:
            measured[cluster.alias] = error
        else:
            buffers[cluster.alias] = _buffers(cluster)
    result = lines_result(plan, measured, buffers, bbr=offers_bbr())
    render(result, output, text=lines_text(result))
    return bool(result["ok"])


def _buffers(cluster: "ClusterPlan") -> "BrokerBuffers | None":
    """Those of one broker; None where we may not read its settings."""
    from replicator.errors import ReplicatorError
    from replicator.kafka.admin.admin import ClusterAdmin
    from replicator.policy.capacity.line_buffers import buffers_of

    try:
        with ClusterAdmin(cluster, client_id="replicator-check") as admin:
            return buffers_of(admin.broker_settings(admin.describe_cluster().brokers[0].id))
    except ReplicatorError:
        return None


def lines_result(
    plan: "Plan",
    measured: "Mapping[str, LineMeasured | ReplicatorError]",
    buffers: "Mapping[str, BrokerBuffers | None]",
    *,
    bbr: bool,
) -> dict[str, Any]:
    """The result as data: clusters with advice, and advice by flow where both of its clusters answered.

    ``buffers`` are those of brokers, by cluster; None or missing where they could not be read.
    """
    from replicator.errors import ReplicatorError
    from replicator.policy.capacity.line_buffers import buffers_advice
    from replicator.policy.capacity.line_settings import NEAR_SECONDS
    from replicator.policy.capacity.worker_place import Line, place_of_worker

    clusters: list[dict[str, Any]] = []
    lines: dict[str, Line] = {}
    for alias, found in measured.items():
        if isinstance(found, ReplicatorError):
            clusters.append({"cluster": alias, "problem": found.paragraph()})
            continue
        lines[alias] = Line(found.round_trip_seconds, found.loss)
        known = buffers.get(alias)
        advice = [] if known is None else buffers_advice(known, found.round_trip_seconds)
        if known is None and found.round_trip_seconds > NEAR_SECONDS:
            advice = [_UNREADABLE]
        clusters.append(
            {
                "cluster": alias,
                "address": found.address,
                "roundTripMs": round(found.round_trip_seconds * 1000, 2),
                "loss": round(found.loss, 5),
                "bytesPerSecond": round(found.bytes_per_second),
                "socketBuffers": None
                if known is None
                else {"sendBytes": known.send_bytes, "receiveBytes": known.receive_bytes},
                "advice": advice,
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
    lines = []
    for each in result["clusters"]:
        if each["problem"]:
            lines.append(f"{each['cluster']}  {each['problem']}")
            continue
        lines.append(
            f"{each['cluster']}  {each['address']}  round trip {each['roundTripMs']:g} ms  "
            f"loss {each['loss']:.2%} of what we send  {each['bytesPerSecond'] / 1e6:.1f} MB/s to it"
        )
        lines += [f"{each['cluster']}  {sentence}." for sentence in each["advice"]]
    words = {"stay": "stay here", "near-target": "stand near the target",
             "near-source": "stand near the source"}  # fmt: skip
    lines += [
        f"{each['flow']}  {words[each['advice']]}: {each['reason']}." for each in result["flows"]
    ]
    return "\n".join(lines)
