import re
from pathlib import Path

import pytest

from replicator.observability.catalogue import CATALOGUE, PREFIX, metric
from replicator.observability.metrics_reference import markdown

# The contract's list; a metric may be added to the catalogue, none may leave it.
CONTRACT = set(
    re.findall(
        r"\w+",
        """
records_replicated_total bytes_replicated_total records_dropped_total records_quarantined_total
lag_records lag_seconds replication_latency_seconds commit_duration_seconds transactions_total
throttle_wait_seconds_total lanes assignment_missing partition_state flow_state
checkpoint_age_seconds group_translation_total group_sync_age_seconds link_role link_epoch
failover_duration_seconds failover_lost_records canary_roundtrip_seconds canary_lost_total plan_info
topology_drift build_info certificate_expiry_seconds token_expiry_seconds
""",
    )
)


def test_every_metric_of_the_contract_is_declared_exactly_once():
    names = [entry.name for entry in CATALOGUE]
    assert len(names) == len(set(names))
    assert set(names) >= CONTRACT


@pytest.mark.parametrize("entry", CATALOGUE, ids=lambda entry: entry.name)
def test_names_follow_the_rules_of_prometheus(entry):
    assert re.fullmatch(r"[a-z][a-z0-9_]*", entry.name)
    assert (entry.kind == "counter") == entry.name.endswith("_total")
    assert (entry.kind == "info") == entry.name.endswith("_info")
    if entry.unit == "seconds":
        assert "seconds" in entry.name
    assert entry.help.endswith(".")
    assert not {"le", "quantile"} & set(entry.labels)
    for label, values in entry.values:
        assert label in entry.labels
        assert values


def test_topic_and_partition_are_labels_only_with_detail():
    for entry in CATALOGUE:
        assert not {"topic", "partition"} & set(entry.label_names(detail=False))
    assert metric("lag_records").label_names(detail=True)[-2:] == ("topic", "partition")
    assert metric("lanes").label_names(detail=True) == ("topology", "link", "flow", "state")


def test_the_committed_reference_is_current():
    committed = Path(__file__).parents[3] / "docs" / "metrics.md"
    assert committed.read_text() == markdown(), (
        "run: python -m replicator.observability.metrics_reference > docs/metrics.md"
    )


def test_the_reference_names_every_metric():
    text = markdown()
    assert all(f"`{PREFIX}{entry.name}`" in text for entry in CATALOGUE)
