"""Checks what `run` was asked for, before anything starts; all problems at once."""

import re
from pathlib import Path

from replicator.dataplane.process.memory_limit import memory_limit
from replicator.errors import InputError
from replicator.topology.file.load import require_plan, topology_path
from replicator.topology.spec.units import parse_size
from replicator.wiring.worker import WorkerOptions

_NAME = re.compile(r"[A-Za-z0-9._:-]{1,200}")
"""It stands in client ids, records and log lines."""


def checked_options(
    *,
    file: Path | None,
    clusters: tuple[str, ...],
    flows: tuple[str, ...],
    worker_id: str | None,
    grace_seconds: float,
    metrics_detail: bool,
    watch: bool = True,
    memory: str | None = None,
    expansion: int = 0,
) -> WorkerOptions:
    """The options of a worker.

    Raises:
        InputError: a name that other workers could not show, a broken topology, or a cluster or flow that it does not have.
    """
    if worker_id is not None and not _NAME.fullmatch(worker_id):
        raise InputError(
            f"{worker_id[:100]!r} cannot be the name of a worker",
            subject="--worker-id",
            remedy="Give 1 to 200 letters, digits, dots, dashes, underscores or colons.",
        )
    memory_bytes = memory_limit() if memory is None else _size(memory)
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
        watch=watch,
        memory_bytes=memory_bytes,
        expansion=expansion,
    )


def _size(text: str) -> int:
    try:
        return parse_size(text)
    except ValueError:
        raise InputError(
            f"{text[:100]!r} is not a size",
            subject="--memory",
            remedy="Write it as 512MiB or 2GiB.",
        ) from None
