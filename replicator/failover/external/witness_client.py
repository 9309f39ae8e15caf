"""Asks a witness which clusters it reaches, and reports to it which ones this worker reaches."""

import http.client
import json
import urllib.error
import urllib.request
from urllib.parse import quote

from replicator.control.records.role_records import SightingRecord
from replicator.control.store.read import read_control
from replicator.errors import NotFoundError, ReplicatorError
from replicator.identifiers import control_topic
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.kafka.logs.compacted_topic import ensure_compacted_topic
from replicator.kafka.logs.log_writer import LogWriter
from replicator.policy.procedure import Automatic
from replicator.topology.plan import ClusterPlan, Plan

CLIENT_ID = "replicator-witness"
ASK_SECONDS = 5.0


def reaches(cluster: ClusterPlan, *, timeout_seconds: float) -> bool:
    """Whether a cluster answers within the time; a refused login is an answer."""
    with ClusterAdmin(cluster, client_id=CLIENT_ID, timeout_seconds=timeout_seconds) as admin:
        try:
            admin.cluster_id()
        except ReplicatorError as error:
            return error.code != "UNREACHABLE"
    return True


def witness_reaches(plan: Plan, automatic: Automatic, cluster: str, *, now_ms: int) -> bool | None:
    """What the witness says about a cluster; None when it says nothing.

    On a witness cluster, any worker's sighting within ``after`` counts as reached.
    """
    if automatic.witness_http:
        return _by_http(automatic.witness_http, cluster)
    witness = plan.cluster(automatic.witness_cluster)
    try:
        state = read_control(
            plan.topology, witness, client_id=CLIENT_ID, timeout_seconds=ASK_SECONDS
        )
    except ReplicatorError:
        return None
    seen_ms = state.last_sighting_ms(cluster)
    if seen_ms is None:
        return None  # no worker ever wrote a sighting: its absence means nothing
    return now_ms - seen_ms < automatic.after_seconds * 1000


def write_sightings(
    plan: Plan, witness: str, reached: list[str], *, worker: str, now_ms: int
) -> None:
    """Writes to a witness cluster which clusters this worker reaches.

    Raises:
        ReplicatorError: the witness does not take it.
    """
    cluster, topic = plan.cluster(witness), control_topic(plan.topology)
    records = [SightingRecord(cluster=alias, worker=worker, at_ms=now_ms) for alias in reached]
    try:
        _write(cluster, topic, records)
    except NotFoundError:
        with ClusterAdmin(cluster, client_id=CLIENT_ID, timeout_seconds=ASK_SECONDS) as admin:
            ensure_compacted_topic(admin, topic, partitions=1)
        _write(cluster, topic, records)


def _write(cluster: ClusterPlan, topic: str, records: list[SightingRecord]) -> None:
    with LogWriter(cluster, topic, client_id=CLIENT_ID, timeout_seconds=ASK_SECONDS) as writer:
        writer.write([record.encode() for record in records])


def _by_http(url: str, cluster: str) -> bool | None:
    joint = "&" if "?" in url else "?"
    request = f"{url}{joint}cluster={quote(cluster)}"
    try:
        with urllib.request.urlopen(request, timeout=ASK_SECONDS) as answer:  # noqa: S310  http(s) only
            found = json.loads(answer.read(4096))
    except urllib.error.HTTPError as refused:
        refused.close()
        return None
    except (OSError, ValueError, http.client.HTTPException):
        return None
    down = found.get("down") if isinstance(found, dict) else None
    return (not down) if isinstance(down, bool) else None
