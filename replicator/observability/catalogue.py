"""Every metric of the product, declared once: name, kind, unit, labels, help.

The exposition (``metrics``), ``docs/metrics.md``, the dashboards and the alert rules are generated
from this table or checked against it; nothing else in the code spells a metric name. Pure.
"""

from dataclasses import dataclass
from typing import Literal

PREFIX = "replicator_"
COMMON_LABELS = ("topology",)
"""Of every sample: two topologies may have links and flows of the same name."""
FLOW_LABELS = ("link", "flow")
DETAIL_LABELS = ("topic", "partition")

Kind = Literal["counter", "gauge", "histogram", "info"]
Unit = Literal["records", "bytes", "seconds", "transactions", "lanes", "partitions", "epoch", ""]


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric as Prometheus sees it.

    ``name`` is without the prefix; ``labels`` are those of every sample beside ``COMMON_LABELS``;
    ``detail`` metrics carry
    ``DETAIL_LABELS`` as well when the worker runs with ``--metrics-detail``; ``values`` names the
    closed set of values of a label that has one.
    """

    name: str
    kind: Kind
    unit: Unit
    labels: tuple[str, ...]
    help: str
    detail: bool = False
    values: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @property
    def full_name(self) -> str:
        """The name on the wire, prefix included."""
        return PREFIX + self.name

    def label_names(self, *, detail: bool) -> tuple[str, ...]:
        """The label names of a sample, with or without ``--metrics-detail``."""
        more = DETAIL_LABELS if detail and self.detail else ()
        return COMMON_LABELS + self.labels + more


def _flow(
    name: str,
    kind: Kind,
    unit: Unit,
    help_text: str,
    *,
    extra: str = "",
    values: tuple[str, ...] = (),
    detail: bool = False,
) -> Metric:
    labels = (*FLOW_LABELS, extra) if extra else FLOW_LABELS
    return Metric(name, kind, unit, labels, help_text, detail, ((extra, values),) if values else ())


FLOW_STATES = ("seeding", "replicating", "paused", "draining", "stopped", "failed")
LANE_STATES = ("starting", "running", "recovering", "stopped", "failed")
PARTITION_STATES = ("waiting", "seeding", "replicating", "paused", "stopped", "failed")
TRANSACTION_OUTCOMES = ("committed", "aborted", "unknown")
DROP_REASONS = ("loop", "filtered", "transformed")
DRIFT_KINDS = ("config", "partitions")
LINK_ROLES = ("active", "passive")
CERTIFICATE_KINDS = ("certificate", "ca")
GRADES = ("exact", "bounded", "unavailable")

CATALOGUE: tuple[Metric, ...] = (
    _flow(
        "records_replicated_total",
        "counter",
        "records",
        "Records acknowledged by the target.",
        detail=True,
    ),
    _flow(
        "bytes_replicated_total",
        "counter",
        "bytes",
        "Key, value and header bytes of the replicated records.",
        detail=True,
    ),
    _flow(
        "records_dropped_total",
        "counter",
        "records",
        "Records left out on purpose, by reason.",
        extra="reason",
        values=DROP_REASONS,
    ),
    _flow(
        "records_quarantined_total",
        "counter",
        "records",
        "Records the target would never take, kept in the quarantine topic.",
    ),
    _flow(
        "records_foreign_header_total",
        "counter",
        "records",
        "Records with a header of the provenance name that another program wrote.",
    ),
    _flow(
        "records_header_omitted_total",
        "counter",
        "records",
        "Records copied without the provenance header because it alone made them too large.",
    ),
    _flow(
        "lag_records",
        "gauge",
        "records",
        "Records of this worker's partitions not yet read by the flow; add up over workers.",
        detail=True,
    ),
    _flow(
        "lag_seconds",
        "gauge",
        "seconds",
        "Age of the last record read where any is left to read, else 0; the worst partition. "
        "Take the maximum over workers.",
        detail=True,
    ),
    _flow(
        "replication_latency_seconds",
        "histogram",
        "seconds",
        "From a record's source timestamp to the target's acknowledgement.",
    ),
    _flow("commit_duration_seconds", "histogram", "seconds", "Time one commit of progress takes."),
    _flow(
        "transactions_total",
        "counter",
        "transactions",
        "Commits of progress by outcome; an unknown outcome is read back, never assumed.",
        extra="outcome",
        values=TRANSACTION_OUTCOMES,
    ),
    _flow(
        "throttle_wait_seconds_total",
        "counter",
        "seconds",
        "Time lanes have waited for the flow's budget, or because a quota of a cluster held them back.",
    ),
    _flow(
        "lanes",
        "gauge",
        "lanes",
        "Lanes this worker owns, by state.",
        extra="state",
        values=LANE_STATES,
    ),
    _flow("assignment_missing", "gauge", "lanes", "Lanes of the flow that no worker owns."),
    _flow(
        "partition_state",
        "gauge",
        "partitions",
        "Partitions of this worker by state; with detail, 1 at the partition's state.",
        extra="state",
        values=PARTITION_STATES,
        detail=True,
    ),
    _flow(
        "flow_state",
        "gauge",
        "",
        "1 at the flow's state, 0 at the others.",
        extra="state",
        values=FLOW_STATES,
    ),
    _flow(
        "checkpoint_age_seconds",
        "gauge",
        "seconds",
        "Time since the last checkpoint of the flow's oldest lane. An idle lane writes none: "
        "read it together with lag.",
    ),
    _flow(
        "problems",
        "gauge",
        "",
        "Problems the flow has now, by problem code of `status`.",
        extra="code",
    ),
    _flow(
        "topology_drift",
        "gauge",
        "",
        "Differences between plan and target that replication does not correct by itself, by kind.",
        extra="kind",
        values=DRIFT_KINDS,
    ),
    _flow(
        "group_translation_total",
        "counter",
        "",
        "Group positions translated, one per partition and round, by grade; counted by the "
        "flow's controller.",
        extra="grade",
        values=GRADES,
    ),
    _flow(
        "group_sync_age_seconds",
        "gauge",
        "seconds",
        "Time since group positions were last synchronised, reported by the flow's controller; "
        "absent before the first time.",
    ),
    _flow(
        "canary_roundtrip_seconds",
        "histogram",
        "seconds",
        "From a canary record's write on the source to its arrival on the target, one every 5 s and "
        "every second while something looks wrong; reported by the flow's controller.",
    ),
    _flow(
        "canary_lost_total",
        "counter",
        "records",
        "Canary records that did not arrive within 30 s while the flow was not paused.",
    ),
    _flow(
        "source_transaction_open_seconds",
        "gauge",
        "seconds",
        "Age of the oldest open transaction on the source that records wait behind, 0 without one; reported "
        "by the flow's controller.",
    ),
    _flow(
        "source_transaction_waiting_records",
        "gauge",
        "records",
        "Records at the source that wait behind open transactions; part of the lag.",
    ),
    Metric(
        "link_role",
        "gauge",
        "",
        ("link", "cluster", "role"),
        "1 at the cluster's role in the link.",
        values=(("role", LINK_ROLES),),
    ),
    Metric(
        "link_problems",
        "gauge",
        "",
        ("link", "code"),
        "Problems of the link itself, by problem code of `status`.",
    ),
    Metric(
        "link_fenced",
        "gauge",
        "",
        ("link", "cluster", "method"),
        "1 while writers of the link are fenced on the cluster, by the method on record.",
    ),
    Metric(
        "link_transition_open_seconds",
        "gauge",
        "seconds",
        ("link", "kind"),
        "Age of the role change that is under way; nothing without one.",
    ),
    Metric("link_epoch", "gauge", "epoch", ("link",), "Epoch of the link's role record."),
    Metric(
        "failover_duration_seconds", "gauge", "seconds", ("link",), "How long the last change took."
    ),
    Metric(
        "failover_lost_records", "gauge", "records", ("link",), "Records the last change gave up."
    ),
    Metric(
        "certificate_expiry_seconds",
        "gauge",
        "seconds",
        ("cluster", "kind"),
        "Time until our certificate for the cluster ends, or the last of the authorities we trust; below 0 "
        "when it has ended. Take the minimum over workers.",
        values=(("kind", CERTIFICATE_KINDS),),
    ),
    Metric(
        "token_expiry_seconds",
        "gauge",
        "seconds",
        ("cluster",),
        "Time until the token that clients of the cluster log in with ends; it is renewed when a fifth of "
        "its life is left.",
    ),
    Metric("plan_info", "info", "", ("hash",), "1 at the hash of the plan this worker runs."),
    Metric(
        "build_info",
        "info",
        "",
        ("version", "revision", "python"),
        "1 at the version of this program.",
    ),
)


def metric(name: str) -> Metric:
    """The declared metric of that name, without the prefix.

    Raises:
        KeyError: when the catalogue has none.
    """
    return _BY_NAME[name]


_BY_NAME = {entry.name: entry for entry in CATALOGUE}
