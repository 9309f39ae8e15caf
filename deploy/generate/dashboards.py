"""The four dashboards: overview, link, groups, failover."""

import json

from panels import Json, Panel, Query, Row, layout

LINK = 'link=~"$link"'
ALL = 'namespace=~"$namespace",topology=~"$topology",'


def dashboards() -> dict[str, str]:
    """File name to JSON text."""
    built = (
        _dashboard("overview", "Replicator: overview", _OVERVIEW, selector=""),
        _dashboard("link", "Replicator: one link", _LINK, selector=LINK, by_link=True),
        _dashboard("groups", "Replicator: groups and checkpoints", _GROUPS, selector=LINK, by_link=True),
        _dashboard("failover", "Replicator: roles and failover", _FAILOVER, selector=LINK, by_link=True),
    )  # fmt: skip
    return {
        f"replicator-{name}.json": json.dumps(content, indent=1) + "\n" for name, content in built
    }


def _dashboard(
    name: str, title: str, rows: tuple[Row, ...], *, selector: str, by_link: bool = False
) -> tuple[str, Json]:
    variables: list[Json] = [
        {
            "name": "datasource", "label": "Data source", "type": "datasource",
            "query": "prometheus", "hide": 0,
        },
        _variable("namespace", "Namespace", "label_values(replicator_build_info, namespace)"),
        _variable(
            "topology", "Topology",
            'label_values(replicator_build_info{namespace=~"$namespace"}, topology)',
        ),
    ]  # fmt: skip
    if by_link:
        query = 'label_values(replicator_flow_state{namespace=~"$namespace",topology=~"$topology"}, link)'
        variables.append(_variable("link", "Link", query))
    return name, {
        "uid": f"replicator-{name}",
        "title": title,
        "tags": ["replicator", "kafka"],
        "editable": True,
        "schemaVersion": 39,
        "version": 1,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "timezone": "browser",
        "templating": {"list": variables},
        "annotations": {"list": []},
        "links": [
            {
                "title": "Replicator", "type": "dashboards", "tags": ["replicator"],
                "asDropdown": True, "includeVars": True, "keepTime": True,
            }
        ],
        "panels": layout(rows, ALL.rstrip(",") + ("," + selector if selector else "")),
    }  # fmt: skip


def _variable(name: str, label: str, query: str) -> Json:
    return {
        "name": name, "label": label, "type": "query", "refresh": 2, "sort": 1, "hide": 0,
        "datasource": {"type": "prometheus", "uid": "${datasource}"},
        "query": {"query": query, "refId": name},
        "includeAll": True, "multi": True,
        "allValue": ".*", "current": {"text": "All", "value": "$__all"},
    }  # fmt: skip


_OVERVIEW = (
    Row(
        "Now",
        (
            Panel("Workers", "stat", "short", (Query("count({build_info})", ""),),
                  "Workers that are scraped.", width=4, height=4),
            Panel("Flows that fail", "stat", "short",
                  (Query('sum(max by (topology, link, flow) ({flow_state|state="failed"}))', ""),),
                  "Flows in state failed.", width=4, height=4, red=1),
            Panel("Worst lag", "stat", "s", (Query("max({lag_seconds})", ""),),
                  "What a failover at this moment would lose at most, in time.",
                  width=4, height=4, amber=30, red=60),
            Panel("Records behind", "stat", "short", (Query("sum({lag_records})", ""),),
                  "Records not copied yet, over all flows.", width=4, height=4),
            Panel("Records per second", "stat", "short",
                  (Query("sum(rate({records_replicated_total}[$__rate_interval]))", ""),),
                  "Over all flows.", width=4, height=4),
            Panel("Canaries lost, 1 h", "stat", "short",
                  (Query("sum(increase({canary_lost_total}[1h]))", ""),),
                  "One small record a second goes through every link.", width=4, height=4, red=1),
        ),
    ),
    Row(
        "Flows",
        (
            Panel("Lag", "timeseries", "s", (Query("max by (topology, link, flow) ({lag_seconds})"),),
                  "Age of the last record read where any is left to read.", amber=30, red=60),
            Panel("Canary round trip, 99th percentile", "timeseries", "s",
                  (Query("histogram_quantile(0.99, sum by (topology, link, flow, le) "
                         "(rate({canary_roundtrip_seconds_bucket}[5m])))"),),
                  "From the write on the source to the arrival on the target."),
            Panel("Records copied", "timeseries", "short",
                  (Query("sum by (topology, link, flow) (rate({records_replicated_total}[$__rate_interval]))"),),
                  "Records a second, acknowledged by the target."),
            Panel("Bytes copied", "timeseries", "Bps",
                  (Query("sum by (topology, link, flow) (rate({bytes_replicated_total}[$__rate_interval]))"),),
                  "Keys, values and headers."),
            Panel("Problems", "table", "short",
                  (Query("max by (topology, link, flow, code) ({problems}) > 0", "{{code}}"),),
                  "What is wrong now, by problem code; `replicator status` says what to do.", red=1),
            Panel("Workers and plans", "table", "short",
                  (Query("count by (hash) ({plan_info})", "{{hash}}"),),
                  "Workers by the topology they run: more than one row lasts only while an edit "
                  "spreads."),
        ),
    ),
)  # fmt: skip

_LINK = (
    Row(
        "Records",
        (
            Panel("Lag in seconds", "timeseries", "s",
                  (Query("max by (flow) ({lag_seconds})", "{{flow}}"),),
                  "The worst partition of each flow.", amber=30, red=60),
            Panel("Lag in records", "timeseries", "short",
                  (Query("sum by (flow) ({lag_records})", "{{flow}}"),), "Records left to read."),
            Panel("Copied", "timeseries", "short",
                  (Query("sum by (flow) (rate({records_replicated_total}[$__rate_interval]))", "{{flow}}"),),
                  "Records a second."),
            Panel("Left out", "timeseries", "short",
                  (Query("sum by (flow, reason) (rate({records_dropped_total}[$__rate_interval]))",
                         "{{flow}} {{reason}}"),
                   Query("sum by (flow) (rate({records_quarantined_total}[$__rate_interval]))",
                         "{{flow}} quarantined")),
                  "Records left out on purpose, by reason, and those the target will never take."),
        ),
    ),
    Row(
        "Time",
        (
            Panel("Latency", "timeseries", "s",
                  (Query("histogram_quantile(0.5, sum by (flow, le) "
                         "(rate({replication_latency_seconds_bucket}[$__rate_interval])))", "{{flow}} p50"),
                   Query("histogram_quantile(0.99, sum by (flow, le) "
                         "(rate({replication_latency_seconds_bucket}[$__rate_interval])))", "{{flow}} p99")),
                  "From a record's source timestamp to the target's acknowledgement."),
            Panel("Latency, all of it", "heatmap", "s",
                  (Query("sum by (le) (increase({replication_latency_seconds_bucket}[$__rate_interval]))",
                         "{{le}}"),),
                  "How many records took how long."),
            Panel("Commits", "timeseries", "s",
                  (Query("histogram_quantile(0.99, sum by (flow, le) "
                         "(rate({commit_duration_seconds_bucket}[$__rate_interval])))", "{{flow}} p99"),),
                  "Time one commit of progress takes."),
            Panel("Outcomes of commits", "timeseries", "short",
                  (Query("sum by (flow, outcome) (rate({transactions_total}[$__rate_interval]))",
                         "{{flow}} {{outcome}}"),),
                  "An unknown outcome is read back, never assumed."),
            Panel("Waiting for the budget", "timeseries", "s",
                  (Query("sum by (flow) (rate({throttle_wait_seconds_total}[$__rate_interval]))", "{{flow}}"),),
                  "Seconds a second that lanes wait because of `throttle`."),
            Panel("Canary", "timeseries", "s",
                  (Query("histogram_quantile(0.99, sum by (flow, le) "
                         "(rate({canary_roundtrip_seconds_bucket}[5m])))", "{{flow}}"),),
                  "Round trip of the small record that goes through the link every second."),
        ),
    ),
    Row(
        "Lanes and partitions",
        (
            Panel("Lanes", "timeseries", "short",
                  (Query("sum by (flow, state) ({lanes})", "{{flow}} {{state}}"),),
                  "Lanes by state, over all workers."),
            Panel("Lanes without a worker", "timeseries", "short",
                  (Query("max by (flow) ({assignment_missing})", "{{flow}}"),),
                  "Lanes that no worker owns.", red=1),
            Panel("Partitions", "timeseries", "short",
                  (Query("sum by (flow, state) ({partition_state})", "{{flow}} {{state}}"),),
                  "Partitions by state, over all workers."),
            Panel("Headers", "timeseries", "short",
                  (Query("sum by (flow) (rate({records_foreign_header_total}[$__rate_interval]))",
                         "{{flow}} foreign"),
                   Query("sum by (flow) (rate({records_header_omitted_total}[$__rate_interval]))",
                         "{{flow}} omitted")),
                  "Records with another program's hop header, and records too large for ours."),
        ),
    ),
)  # fmt: skip

_GROUPS = (
    Row(
        "Groups",
        (
            Panel("Age of group positions", "timeseries", "s",
                  (Query("max by (topology, link, flow) ({group_sync_age_seconds})"),),
                  "What consumers would read again after a failover, in time.", amber=60, red=120),
            Panel("Translations by grade", "timeseries", "short",
                  (Query("sum by (topology, link, flow, grade) (rate({group_translation_total}[5m]))",
                         "{{flow}} {{link}} {{grade}}"),),
                  "Exact: to the record. Bounded: some records are read again. Unavailable: the group "
                  "starts by its own reset policy."),
            Panel("Share that is exact", "stat", "percentunit",
                  (Query('sum by (topology, link, flow) (rate({group_translation_total|grade="exact"}[5m])) / '
                         "sum by (topology, link, flow) (rate({group_translation_total}[5m]))"),),
                  "Positions that are exact to the record.", width=8, height=6),
            Panel("Refused groups", "stat", "short",
                  (Query('max by (topology, link, flow) ({problems|code="GROUP_REFUSED"})'),),
                  "Flows of which a cluster refuses a group's positions, usually because it has "
                  "members there.", width=8, height=6, amber=1),
            Panel("Drift", "stat", "short",
                  (Query("sum by (topology, link, flow, kind) ({topology_drift})", "{{flow}} {{kind}}"),),
                  "Differences on the target that replication does not correct by itself.",
                  width=8, height=6, amber=1),
        ),
    ),
    Row(
        "Checkpoints",
        (
            Panel("Age of checkpoints", "timeseries", "s",
                  (Query("max by (topology, link, flow) ({checkpoint_age_seconds})"),),
                  "The oldest lane. An idle lane writes none: read it together with lag."),
            Panel("Records behind", "timeseries", "short",
                  (Query("sum by (topology, link, flow) ({lag_records})"),), "Records left to read."),
        ),
    ),
)  # fmt: skip

_FAILOVER = (
    Row(
        "Roles",
        (
            Panel("Who is what", "table", "short",
                  (Query("max by (topology, link, cluster, role) ({link_role}) > 0", "{{link}}"),),
                  "Roles of the clusters in each link.", width=12),
            Panel("Epoch", "timeseries", "short",
                  (Query("max by (topology, link) ({link_epoch})", "{{link}}"),),
                  "Goes up with each change of roles, and never back.", width=12),
        ),
    ),
    Row(
        "Before: what a failover would cost now",
        (
            Panel("Loss, in time", "stat", "s", (Query("max by (topology, link, flow) ({lag_seconds})"),),
                  "Lag of the flow: what the other side does not have.", width=8, height=6,
                  amber=30, red=60),
            Panel("Loss, in records", "stat", "short",
                  (Query("sum by (topology, link, flow) ({lag_records})"),),
                  "Records the other side does not have.", width=8, height=6, amber=1),
            Panel("Read again, in time", "stat", "s",
                  (Query("max by (topology, link, flow) ({group_sync_age_seconds})"),),
                  "Age of group positions on the other side.", width=8, height=6, amber=60, red=120),
            Panel("State of flows", "state-timeline", "short",
                  (Query('max by (topology, link, flow) ({flow_state|state="replicating"}) + '
                         '2 * max by (topology, link, flow) ({flow_state|state="draining"}) + '
                         '3 * max by (topology, link, flow) ({flow_state|state="failed"})'),),
                  "What the flows of the link did.", width=24, height=7,
                  mappings=(("0", "not replicating", "gray"), ("1", "replicating", "green"),
                            ("2", "draining", "orange"), ("3", "failed", "red"))),
        ),
    ),
    Row(
        "After: the last change and drills",
        (
            Panel("How long it took", "timeseries", "s",
                  (Query("max by (topology, link) ({failover_duration_seconds})", "{{link}}"),),
                  "Of the last switchover, failover, failback or drill.", width=12),
            Panel("Records given up", "timeseries", "short",
                  (Query("max by (topology, link) ({failover_lost_records})", "{{link}}"),),
                  "By the last change.", width=12, red=1),
        ),
    ),
)  # fmt: skip
