"""From totals and a snapshot to samples, family by family, in the order of the catalogue. Pure.

One pass over the partitions feeds every family that looks at them: with 100 lanes of 100 partitions
a scrape must stay cheap.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from replicator.formats.lane_stats import LaneStats
from replicator.identifiers import is_canary_topic
from replicator.observability.build import Build
from replicator.observability.catalogue import (
    CATALOGUE,
    CERTIFICATE_KINDS,
    DRIFT_KINDS,
    DROP_REASONS,
    FLOW_STATES,
    GRADES,
    LANE_STATES,
    LINK_ROLES,
    PARTITION_STATES,
    TRANSACTION_OUTCOMES,
    Metric,
)
from replicator.observability.snapshot import (
    LinkMetrics,
    MetricsSnapshot,
    TaskMetrics,
    lag_records,
    lag_seconds,
)
from replicator.observability.totals import FlowKey, FlowTotals, Totals

_OF_FLOWS = frozenset(
    {
        "assignment_missing", "flow_state", "problems", "topology_drift",
        "group_translation_total", "group_sync_age_seconds",
        "canary_roundtrip_seconds", "canary_lost_total",
        "source_transaction_open_seconds", "source_transaction_waiting_records",
    }
)  # fmt: skip
_LINK_SAMPLES: dict[str, Callable[[LinkMetrics], list[tuple[tuple[str, ...], float]]]] = {
    "link_epoch": lambda one: [((), one.epoch)],
    "link_role": lambda one: [
        ((cluster, role), int(role == held))
        for cluster, held in one.roles.items()
        for role in LINK_ROLES
    ],
    "link_problems": lambda one: [
        ((code,), one.problem_codes.count(code)) for code in sorted(set(one.problem_codes))
    ],
    "link_fenced": lambda one: [(fence, 1) for fence in one.fences],
    "link_transition_open_seconds": lambda one: (
        [] if one.open_seconds is None else [((one.open_kind,), one.open_seconds)]
    ),
    "failover_duration_seconds": lambda one: (
        [] if one.duration_seconds is None else [((), one.duration_seconds)]
    ),
    "failover_lost_records": lambda one: (
        [] if one.lost_records is None else [((), one.lost_records)]
    ),
}
"""Label values after the link, and the value, of each metric of links."""

_OF_LOGINS = frozenset({"certificate_expiry_seconds", "token_expiry_seconds"})
_DRIFT_OF_CODE = {"CONFIG_DRIFT": "config", "TARGET_FEWER_PARTITIONS": "partitions"}


@dataclass(frozen=True, slots=True)
class Sample:
    """One line of the exposition: suffix of the family's name, label values in order, value."""

    values: tuple[str, ...]
    value: float
    suffix: str = ""
    bound: str = ""


@dataclass(slots=True)
class _FlowNow:
    """What the lanes of one flow say at this moment."""

    lanes: dict[str, int] = field(default_factory=dict)
    partitions: dict[str, int] = field(default_factory=dict)
    lag_records: int | None = None
    lag_seconds: float | None = None
    checkpoint_at_ms: int | None = None


class Families:
    """Builds the samples of every metric of the catalogue for one scrape."""

    def __init__(
        self,
        *,
        totals: Totals,
        snapshot: MetricsSnapshot,
        bounds_seconds: Sequence[float],
        build: Build,
        detail: bool,
    ) -> None:
        self._totals = totals
        self._snapshot = snapshot
        self._bounds = (*(str(float(bound)) for bound in bounds_seconds), "+Inf")
        self._build = build
        self._detail = detail
        # Keyed by partition: one that is changing lanes is in two of them for a moment, and a
        # series that appears twice makes Prometheus refuse the whole scrape.
        self._by_partition: dict[str, dict[tuple[str, ...], Sample]] = {
            "lag_records": {},
            "lag_seconds": {},
            "partition_state": {},
        }
        for entry in snapshot.flows:
            totals.flow(entry.link, entry.flow)  # so that rates start from an explicit zero
        self._now: dict[FlowKey, _FlowNow] = {key: _FlowNow() for key in totals.flows}
        for lane in snapshot.lanes:
            self._look_at(lane)

    def __iter__(self) -> Iterator[tuple[Metric, list[Sample]]]:
        """Every declared metric with its samples, in catalogue order."""
        for entry in CATALOGUE:
            yield entry, list(self._samples(entry.name))

    def _look_at(self, lane: LaneStats) -> None:
        now = self._now.setdefault((lane.link, lane.pair), _FlowNow())
        now.lanes[lane.state] = now.lanes.get(lane.state, 0) + 1
        if lane.checkpoint_at_ms > 0:
            oldest = now.checkpoint_at_ms
            now.checkpoint_at_ms = (
                lane.checkpoint_at_ms if oldest is None else min(oldest, lane.checkpoint_at_ms)
            )
        for partition in lane.partitions:
            if is_canary_topic(partition.topic):
                continue
            now.partitions[partition.state] = now.partitions.get(partition.state, 0) + 1
            records = lag_records(partition)
            seconds = lag_seconds(partition, now_ms=self._snapshot.now_ms)
            if records is not None:
                now.lag_records = (now.lag_records or 0) + records
            if seconds is not None:
                now.lag_seconds = max(now.lag_seconds or 0.0, seconds)
            if self._detail:
                where = (lane.link, lane.pair)
                which = (partition.topic, str(partition.partition))
                key = (*where, *which)
                state = (*where, partition.state, *which)
                self._by_partition["partition_state"][key] = Sample(state, 1)
                if records is not None:
                    self._by_partition["lag_records"][key] = Sample(key, records)
                if seconds is not None:
                    self._by_partition["lag_seconds"][key] = Sample(key, seconds)

    def _samples(self, name: str) -> Iterator[Sample]:
        if self._detail and name in self._by_partition:
            yield from self._by_partition[name].values()
        elif name in {"plan_info", "build_info"}:
            yield Sample(self._identity(name), 1)
        elif name in _LINK_SAMPLES or name in _OF_LOGINS:
            yield from self._of_links(name) if name in _LINK_SAMPLES else self._of_logins(name)
        elif name in _OF_FLOWS:
            yield from self._of_flows(name)
        elif name in {
            "lanes", "partition_state", "lag_records", "lag_seconds", "checkpoint_age_seconds",
        }:  # fmt: skip
            for key, now in self._now.items():
                yield from self._of_now(name, key, now)
        elif self._detail and name in {"records_replicated_total", "bytes_replicated_total"}:
            index = 0 if name.startswith("records") else 1
            for (link, flow, topic, partition), counts in self._totals.partitions.items():
                yield Sample((link, flow, topic, str(partition)), counts[index])
        else:
            for key, totals in self._totals.flows.items():
                yield from self._of_totals(name, key, totals)

    def _identity(self, name: str) -> tuple[str, ...]:
        build = self._build
        if name == "plan_info":
            return (self._snapshot.plan_hash,)
        return (build.version, build.revision, build.python)

    def _of_links(self, name: str) -> Iterator[Sample]:
        for entry in self._snapshot.links:
            for labels, value in _LINK_SAMPLES[name](entry):
                yield Sample((entry.link, *labels), value)

    def _of_logins(self, name: str) -> Iterator[Sample]:
        for entry in self._snapshot.logins:
            if name == "token_expiry_seconds" and entry.kind == "token":
                yield Sample((entry.cluster,), entry.seconds_left)
            elif name == "certificate_expiry_seconds" and entry.kind in CERTIFICATE_KINDS:
                yield Sample((entry.cluster, entry.kind), entry.seconds_left)

    def _of_flows(self, name: str) -> Iterator[Sample]:
        for entry in self._snapshot.flows:
            key = (entry.link, entry.flow)
            if name == "assignment_missing":
                if entry.lanes_missing is not None:
                    yield Sample(key, entry.lanes_missing)
            elif name == "flow_state":
                for state in FLOW_STATES:
                    yield Sample((*key, state), int(state == entry.state))
            elif name.startswith(("group_", "canary_", "source_transaction_")):
                yield from self._of_duties(name, key, entry.tasks)
            elif name == "problems":
                for code in sorted(set(entry.problem_codes)):
                    yield Sample((*key, code), entry.problem_codes.count(code))
            else:
                kinds = [_DRIFT_OF_CODE.get(code) for code in entry.problem_codes]
                for kind in DRIFT_KINDS:
                    yield Sample((*key, kind), kinds.count(kind))

    def _of_duties(self, name: str, key: FlowKey, tasks: TaskMetrics | None) -> Iterator[Sample]:
        if tasks is None:
            return  # another worker is the flow's controller and shows them
        if name == "group_translation_total":
            for grade in GRADES:
                yield Sample((*key, grade), tasks.translations.get(grade, 0))
        elif name == "canary_roundtrip_seconds":
            buckets = tasks.canary_buckets or [0] * len(self._bounds)
            yield from self._histogram(key, buckets, tasks.canary_sum_seconds)
        elif name == "canary_lost_total":
            yield Sample(key, tasks.canary_lost)
        elif name == "source_transaction_open_seconds":
            yield Sample(key, tasks.open_transactions.seconds)
        elif name == "source_transaction_waiting_records":
            yield Sample(key, tasks.open_transactions.records)
        elif tasks.groups_synced_at_ms >= 0:
            age_seconds = (self._snapshot.now_ms - tasks.groups_synced_at_ms) / 1000
            yield Sample(key, max(0.0, age_seconds))

    def _of_now(self, name: str, key: FlowKey, now: _FlowNow) -> Iterator[Sample]:
        if name == "lanes":
            for state in LANE_STATES:
                yield Sample((*key, state), now.lanes.get(state, 0))
        elif name == "partition_state":
            for state in PARTITION_STATES:
                yield Sample((*key, state), now.partitions.get(state, 0))
        elif name == "lag_records":
            if now.lag_records is not None:
                yield Sample(key, now.lag_records)
        elif name == "lag_seconds":
            if now.lag_seconds is not None:
                yield Sample(key, now.lag_seconds)
        elif now.checkpoint_at_ms is not None:
            age_seconds = (self._snapshot.now_ms - now.checkpoint_at_ms) / 1000
            yield Sample(key, max(0.0, age_seconds))

    def _of_totals(self, name: str, key: FlowKey, totals: FlowTotals) -> Iterator[Sample]:
        if name == "records_dropped_total":
            for reason in dict.fromkeys((*DROP_REASONS, *totals.dropped)):
                yield Sample((*key, reason), totals.dropped.get(reason, 0))
        elif name == "transactions_total":
            counts = (totals.commits, totals.aborts, totals.unknown_outcomes)
            for outcome, count in zip(TRANSACTION_OUTCOMES, counts, strict=True):
                yield Sample((*key, outcome), count)
        elif name == "replication_latency_seconds":
            yield from self._histogram(key, totals.latency_buckets, totals.latency_sum_seconds)
        elif name == "commit_duration_seconds":
            yield from self._histogram(key, totals.commit_buckets, totals.commit_sum_seconds)
        else:
            yield Sample(key, _PLAIN_COUNTERS[name](totals))

    def _histogram(
        self, key: FlowKey, buckets: Sequence[int], sum_seconds: float
    ) -> Iterator[Sample]:
        cumulative = 0
        for bound, count in zip(self._bounds, buckets, strict=True):
            cumulative += count
            yield Sample(key, cumulative, "_bucket", bound)
        yield Sample(key, cumulative, "_count")
        yield Sample(key, sum_seconds, "_sum")


_PLAIN_COUNTERS = {
    "records_replicated_total": lambda totals: totals.records,
    "bytes_replicated_total": lambda totals: totals.bytes,
    "records_quarantined_total": lambda totals: totals.quarantined,
    "records_foreign_header_total": lambda totals: totals.foreign_headers,
    "records_header_omitted_total": lambda totals: totals.headers_omitted,
    "throttle_wait_seconds_total": lambda totals: totals.throttle_wait_seconds,
}
