"""Where every consumer group stands on both sides, and what a move now would cost; changes nothing."""

import asyncio
from collections.abc import Mapping, Sequence

from replicator.clock import Clock
from replicator.control.status.translator import CLIENT_ID, open_translator
from replicator.control.store.state import ControlState
from replicator.errors import NotFoundError, ReplicatorError
from replicator.identifiers import JsonObject, control_topic
from replicator.kafka.logs.compacted_read import read_compacted
from replicator.offsets.groups.group_report import PartitionOutcome, last_synced_ms
from replicator.offsets.groups.group_sync import GroupSync
from replicator.offsets.translation.translator import Translator
from replicator.topology.plan import ClusterPlan, PairPlan, Plan


def survey_groups(
    plan: Plan,
    pairs: Sequence[PairPlan],
    *,
    clock: Clock,
    groups: Sequence[str] = (),
    followed: Mapping[str, ControlState] | None = None,
) -> JsonObject:
    """The object of ``groups -o json``. Blocking; a cluster that does not answer is a problem in it.

    Args:
        plan: the topology, with its flows as roles have them.
        pairs: which of its pairs to look at.
        clock: time as a dependency.
        groups: only these, where any are named.
        followed: control topics that the process follows, by cluster.
    """
    found: list[JsonObject] = []
    failures: list[tuple[PairPlan, ReplicatorError]] = []
    with open_translator(plan, followed=lambda: followed or {}) as translator:
        for pair in pairs:
            try:
                seen, unheard = _survey(plan, pair, translator, groups, clock)
                found.extend(seen)
                if unheard is not None:
                    failures.append((pair, unheard))
            except ReplicatorError as error:
                failures.append((pair, error))
    problems = [
        {
            "code": error.code,
            "subject": error.subject or pair.id,
            "detail": error.message,
            "remedy": error.remedy,
        }
        for pair, error in failures
    ]
    return {"groups": found, "problems": problems}


def _survey(
    plan: Plan, pair: PairPlan, translator: Translator, groups: Sequence[str], clock: Clock
) -> tuple[list[JsonObject], ReplicatorError | None]:
    """The groups of a pair, and why its source may have more."""
    sync = GroupSync(plan, pair, translator=translator, clock=clock)
    report = asyncio.run(sync.run_once(commit=False, groups=groups))
    try:
        topic = control_topic(plan.topology)
        records = read_compacted(pair.target, topic, client_id=CLIENT_ID)[0]
    except NotFoundError:
        records = {}
    synced_ms, failed = last_synced_ms(records, pair.source.alias)
    seen: list[JsonObject] = [
        {
            "group": group.group,
            "flow": pair.id,
            "link": group.link,
            "state": group.state,
            "reason": group.reason,
            "lastSyncedAgeSeconds": (
                None
                if synced_ms is None or group.group in failed
                else max(0.0, clock.now() - synced_ms / 1000)
            ),
            "partitions": [
                {**partition.as_json(), **_seconds(partition, pair, translator, clock)}
                for partition in group.partitions
            ],
        }
        for group in report.groups
    ]
    return seen, report.unheard


def _seconds(
    part: PartitionOutcome, pair: PairPlan, translator: Translator, clock: Clock
) -> JsonObject:
    """How old the first unread record is on each side; None where that cannot be told."""

    def age(cluster: ClusterPlan, topic: str, at: int | None, lag: int | None) -> float | None:
        if at is None or lag is None:
            return None
        if lag == 0:
            return 0.0
        try:
            record = translator.probe(cluster).record(topic, part.partition, at, or_next=True)
        except ReplicatorError:
            return None
        if record is None:  # nothing but markers is left
            return 0.0
        return max(0.0, clock.now() - record.timestamp()[1] / 1000)

    return {
        "sourceLagSeconds": age(pair.source, part.topic, part.source_offset, part.source_lag),
        "targetLagSeconds": age(
            pair.target, part.target_topic, part.target_offset, part.target_lag
        ),
    }
