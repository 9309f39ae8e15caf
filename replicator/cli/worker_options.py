"""Checks what `run` was asked for, before anything starts; all problems at once."""

from pathlib import Path

from replicator.errors import InputError
from replicator.topology.load import require_plan, topology_path
from replicator.wiring import WorkerOptions


def checked_options(
    *,
    file: Path | None,
    clusters: tuple[str, ...],
    flows: tuple[str, ...],
    worker_id: str | None,
    grace_seconds: float,
    metrics_detail: bool,
) -> WorkerOptions:
    """The options of a worker.

    Raises:
        InputError: a broken topology, or a cluster or flow that it does not have.
    """
    path = topology_path(file)
    plan = require_plan(path)
    aliases = sorted(cluster.alias for cluster in plan.clusters)
    known = sorted({pair.id for pair in (*plan.pairs, *plan.resting_pairs)})
    wrong = [
        f"no cluster '{alias}' (there are: {', '.join(aliases)})"
        for alias in clusters
        if alias not in aliases
    ]
    wrong += [
        f"no flow '{flow}' (there are: {', '.join(known)})" for flow in flows if flow not in known
    ]
    if wrong:
        raise InputError(f"the topology has {'; '.join(wrong)}", remedy="Name one of these.")
    return WorkerOptions(
        topology_file=path,
        clusters=clusters,
        flows=flows,
        worker_id=worker_id,
        grace_seconds=grace_seconds,
        metrics_detail=metrics_detail,
    )
