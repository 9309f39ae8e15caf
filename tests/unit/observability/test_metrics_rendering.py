import dataclasses
from dataclasses import dataclass

import pytest
from prometheus_client.parser import text_string_to_metric_families

from replicator.formats.lane_stats import (
    LATENCY_BOUNDS_SECONDS,
    LaneStats,
    PartitionStats,
)
from replicator.observability.build import Build
from replicator.observability.catalogue import CATALOGUE, PREFIX
from replicator.observability.metrics import Metrics
from replicator.observability.snapshot import (
    FlowMetrics,
    LinkMetrics,
    LoginMetrics,
    MetricsSnapshot,
    TaskMetrics,
    lag_records,
    lag_seconds,
)

FLOW = {"topology": "shop", "link": "orders-dr", "flow": "east->west"}
PARTITION = PartitionStats(
    topic="orders",
    partition=3,
    target_topic="orders",
    state="replicating",
    position=90,
    source_end=100,
    timestamp_ms=58_000,
    records=7,
    bytes=700,
)
LANE = LaneStats(
    pair="east->west",
    link="orders-dr",
    lane=0,
    state="running",
    reason="",
    partitions=(PARTITION,),
    records=7,
    bytes=700,
    dropped={"loop": 2},
    quarantined=1,
    foreign_headers=3,
    headers_omitted=4,
    commits=5,
    aborts=1,
    unknown_outcomes=1,
    throttle_wait_seconds=1.5,
    latency_buckets=(1, 2, *[0] * (len(LATENCY_BOUNDS_SECONDS) - 2), 4),
    latency_sum_seconds=12.5,
    commit_buckets=(5,),
    commit_sum_seconds=0.005,
    checkpoint_at_ms=55_000,
    pid=10,
)
FLOW_NOW = FlowMetrics(
    link="orders-dr",
    flow="east->west",
    state="replicating",
    lanes_missing=2,
    problem_codes=("CONFIG_DRIFT", "CONFIG_DRIFT", "TRUNCATED"),
    tasks=TaskMetrics(
        translations={"exact": 6, "bounded": 1},
        groups_synced_at_ms=57_500,
        canary_buckets=[0, 3, 1, *[0] * (len(LATENCY_BOUNDS_SECONDS) - 2)],
        canary_sum_seconds=0.02,
        canary_lost=2,
    ),
)
LINK_NOW = LinkMetrics(
    link="orders-dr",
    epoch=3,
    roles={"east": "passive", "west": "active"},
    duration_seconds=6.5,
    lost_records=12,
)


LOGINS = (
    LoginMetrics("east", "ca", 99.0),
    LoginMetrics("east", "certificate", -3.0),
    LoginMetrics("west", "token", 12.0),
)


def snapshot(*lanes, flows=(FLOW_NOW,)):
    return MetricsSnapshot(
        now_ms=60_000,
        topology="shop",
        plan_hash="abc",
        lanes=lanes,
        flows=flows,
        links=(LINK_NOW,),
        logins=LOGINS,
    )


def metrics(*, detail=False):
    return Metrics(
        bounds_seconds=LATENCY_BOUNDS_SECONDS,
        detail=detail,
        build=Build(version="1.2.3", revision="deadbeef", python="3.11"),
    )


def samples(exposition):
    return {
        (line.name.removeprefix("replicator_"), tuple(sorted(line.labels.items()))): line.value
        for family in text_string_to_metric_families(exposition.decode())
        for line in family.samples
    }


def value(exposition, name, **labels):
    return samples(exposition)[name, tuple(sorted({**FLOW, **labels}.items()))]


def test_every_figure_of_a_lane_arrives_under_its_name():
    page = metrics().render(snapshot(LANE))
    assert value(page, "records_replicated_total") == 7
    assert value(page, "bytes_replicated_total") == 700
    assert value(page, "records_dropped_total", reason="loop") == 2
    assert value(page, "records_dropped_total", reason="filtered") == 0
    assert value(page, "records_quarantined_total") == 1
    assert value(page, "records_foreign_header_total") == 3
    assert value(page, "records_header_omitted_total") == 4
    assert value(page, "transactions_total", outcome="committed") == 5
    assert value(page, "transactions_total", outcome="unknown") == 1
    assert value(page, "throttle_wait_seconds_total") == 1.5
    assert value(page, "lag_records") == 10
    assert value(page, "lag_seconds") == 2.0
    assert value(page, "checkpoint_age_seconds") == 5.0
    assert value(page, "lanes", state="running") == 1
    assert value(page, "lanes", state="failed") == 0
    assert value(page, "partition_state", state="replicating") == 1
    assert value(page, "assignment_missing") == 2
    assert value(page, "flow_state", state="replicating") == 1
    assert value(page, "flow_state", state="failed") == 0
    assert value(page, "problems", code="TRUNCATED") == 1
    assert value(page, "topology_drift", kind="config") == 2
    found = samples(page)
    assert found["plan_info", (("hash", "abc"), ("topology", "shop"))] == 1
    build = (
        ("python", "3.11"),
        ("revision", "deadbeef"),
        ("topology", "shop"),
        ("version", "1.2.3"),
    )
    assert found["build_info", build] == 1


def test_groups_are_counted_by_grade_and_their_sync_grows_old():
    page = metrics().render(snapshot(LANE))
    assert value(page, "group_translation_total", grade="exact") == 6
    assert value(page, "group_translation_total", grade="bounded") == 1
    assert value(page, "group_translation_total", grade="unavailable") == 0
    assert value(page, "group_sync_age_seconds") == 2.5


def test_round_trips_of_canaries_are_a_histogram_and_lost_ones_are_counted():
    page = metrics().render(snapshot(LANE))
    assert value(page, "canary_roundtrip_seconds_bucket", le="0.005") == 3
    assert value(page, "canary_roundtrip_seconds_count") == 4
    assert value(page, "canary_roundtrip_seconds_sum") == 0.02
    assert value(page, "canary_lost_total") == 2


def test_before_the_first_canary_its_histogram_is_empty():
    flow = dataclasses.replace(FLOW_NOW, tasks=TaskMetrics())
    page = metrics().render(snapshot(LANE, flows=(flow,)))
    assert value(page, "canary_roundtrip_seconds_count") == 0
    assert value(page, "canary_lost_total") == 0


def test_the_partition_of_a_canary_is_none_of_the_flows():
    canary = dataclasses.replace(PARTITION, topic="__replicator.shop.east.west.dr.canary")
    lane = dataclasses.replace(LANE, partitions=(PARTITION, canary))
    for detail in (False, True):
        face = metrics(detail=detail)
        face.observe([lane])
        page = face.render(snapshot(lane)).decode()
        assert ".canary" not in page
        assert value(page.encode(), "partition_state", state="replicating", **(
            {"topic": "orders", "partition": "3"} if detail else {}
        )) == 1  # fmt: skip


def test_before_the_first_sync_of_groups_there_is_no_age():
    flow = dataclasses.replace(FLOW_NOW, tasks=TaskMetrics())
    names = {name for name, _ in samples(metrics().render(snapshot(LANE, flows=(flow,))))}
    assert "group_translation_total" in names
    assert "group_sync_age_seconds" not in names


def test_only_the_controller_of_a_flow_reports_its_groups():
    flow = dataclasses.replace(FLOW_NOW, tasks=None)
    names = {name for name, _ in samples(metrics().render(snapshot(LANE, flows=(flow,))))}
    assert not any(name.startswith(("group_", "canary_")) for name in names)


def test_histograms_are_cumulative_and_end_with_everything():
    page = metrics().render(snapshot(LANE))
    name = "replication_latency_seconds_bucket"
    assert value(page, name, le="0.002") == 1
    assert value(page, name, le="0.005") == 3
    assert value(page, name, le="1800.0") == 3
    assert value(page, name, le="+Inf") == 7
    assert value(page, "replication_latency_seconds_count") == 7
    assert value(page, "replication_latency_seconds_sum") == 12.5
    assert value(page, "commit_duration_seconds_count") == 5


@dataclass(frozen=True, slots=True)
class CatalogueDifferences:
    """What an exposition and the catalogue disagree on; empty when they agree."""

    undeclared: tuple[str, ...]
    missing: tuple[str, ...]
    wrong_labels: tuple[str, ...]


def compare_with_catalogue(exposition: str, *, detail: bool = False) -> CatalogueDifferences:
    """Compares a scrape with the catalogue: names both ways, and the labels of every sample."""
    declared = {entry.full_name: entry for entry in CATALOGUE}
    seen: set[str] = set()
    wrong: set[str] = set()
    for family in text_string_to_metric_families(exposition):
        name = family.name + ("_total" if family.type == "counter" else "")
        seen.add(name)
        if name not in declared:
            continue
        expected = set(declared[name].label_names(detail=detail))
        wrong.update(name for line in family.samples if set(line.labels) - {"le"} != expected)
    undeclared = {name for name in seen - declared.keys() if name.startswith(PREFIX)}
    return CatalogueDifferences(
        undeclared=tuple(sorted(undeclared)),
        missing=tuple(sorted(declared.keys() - seen)),
        wrong_labels=tuple(sorted(wrong)),
    )


@pytest.mark.parametrize("detail", [False, True])
def test_what_is_emitted_is_declared_and_what_is_declared_is_emitted(detail):
    page = metrics(detail=detail).render(snapshot(LANE)).decode()
    found = compare_with_catalogue(page, detail=detail)
    assert (found.undeclared, found.missing, found.wrong_labels) == ((), (), ())


def test_a_difference_from_the_catalogue_is_named():
    page = metrics().render(snapshot(LANE)).decode()
    page = page.replace("replicator_lag_records", "replicator_delay_records")
    page = page.replace('state="running"', 'condition="running"')
    found = compare_with_catalogue(page)
    assert found.undeclared == ("replicator_delay_records",)
    assert found.missing == ("replicator_lag_records",)
    assert found.wrong_labels == ("replicator_lanes",)


def test_a_metric_that_nobody_declared_is_noticed_when_emitted():
    page = "# TYPE replicator_unheard_of gauge\nreplicator_unheard_of 1\n"
    assert compare_with_catalogue(page).undeclared == ("replicator_unheard_of",)


def test_counters_go_on_over_a_restart_and_a_move_to_another_process():
    face = metrics()
    face.observe([LANE])
    restarted = dataclasses.replace(
        LANE, records=2, bytes=200, dropped={}, commits=1, latency_buckets=(), partitions=()
    )
    face.observe([restarted])
    moved = dataclasses.replace(restarted, pid=11, records=30)
    page = face.render(snapshot(moved))
    assert value(page, "records_replicated_total") == 7 + 2 + 30
    assert value(page, "records_dropped_total", reason="loop") == 2
    assert value(page, "replication_latency_seconds_count") == 7


def test_observing_the_same_message_twice_counts_it_once():
    face = metrics()
    face.observe([LANE, LANE])
    assert value(face.render(snapshot(LANE)), "records_replicated_total") == 7


def test_counters_of_a_lane_that_went_elsewhere_stay():
    face = metrics()
    face.observe([LANE])
    page = face.render(snapshot())
    assert value(page, "records_replicated_total") == 7
    assert value(page, "lanes", state="running") == 0


def test_detail_names_topic_and_partition():
    page = metrics(detail=True).render(snapshot(LANE))
    where = {"topic": "orders", "partition": "3"}
    assert value(page, "records_replicated_total", **where) == 7
    assert value(page, "lag_records", **where) == 10
    assert value(page, "partition_state", state="replicating", **where) == 1


def test_a_partition_between_two_lanes_is_one_series():
    other = dataclasses.replace(LANE, lane=1)
    page = metrics(detail=True).render(snapshot(LANE, other)).decode()
    lines = [line for line in page.splitlines() if line.startswith("replicator_lag_records{")]
    assert len(lines) == len(set(lines)) == 1


def test_a_flow_without_lanes_here_starts_its_counters_at_zero():
    page = metrics().render(snapshot())
    assert value(page, "records_replicated_total") == 0
    assert value(page, "replication_latency_seconds_count") == 0
    assert ("lag_records", tuple(sorted(FLOW.items()))) not in samples(page)


def test_missing_lanes_are_not_claimed_when_not_known():
    unknown = dataclasses.replace(FLOW_NOW, lanes_missing=None)
    page = metrics().render(snapshot(flows=(unknown,)))
    assert ("assignment_missing", tuple(sorted(FLOW.items()))) not in samples(page)


@pytest.mark.parametrize(
    ("change", "records", "seconds"),
    [
        ({}, 10, 2.0),
        ({"position": 100}, 0, 0.0),
        ({"position": 101}, 0, 0.0),
        ({"source_end": -1}, None, None),
        ({"position": -1}, None, None),
        ({"timestamp_ms": -1}, 10, None),
        ({"timestamp_ms": 90_000}, 10, 0.0),
    ],
)
def test_lag_is_known_or_not_claimed(change, records, seconds):
    partition = dataclasses.replace(PARTITION, **change)
    assert lag_records(partition) == records
    assert lag_seconds(partition, now_ms=60_000) == seconds


def test_labels_from_clusters_cannot_break_the_format():
    evil = dataclasses.replace(LANE, dropped={'a"b\\c\nd': 1})
    page = metrics().render(snapshot(evil))
    assert value(page, "records_dropped_total", reason='a"b\\c\nd') == 1


def test_roles_of_links_and_the_duration_of_their_last_change_are_reported():
    text = metrics().render(snapshot()).decode()
    assert 'replicator_link_epoch{link="orders-dr",topology="shop"} 3.0' in text
    assert (
        'replicator_link_role{cluster="west",link="orders-dr",role="active",topology="shop"} 1.0'
        in text
    )
    assert (
        'replicator_link_role{cluster="east",link="orders-dr",role="active",topology="shop"} 0.0'
        in text
    )
    assert 'replicator_failover_duration_seconds{link="orders-dr",topology="shop"} 6.5' in text
    assert 'replicator_failover_lost_records{link="orders-dr",topology="shop"} 12.0' in text


def test_how_long_certificates_and_tokens_stay_valid_is_reported():
    text = metrics().render(snapshot()).decode()
    assert (
        'replicator_certificate_expiry_seconds{cluster="east",kind="certificate",topology="shop"} -3.0'
        in text
    )
    assert (
        'replicator_certificate_expiry_seconds{cluster="east",kind="ca",topology="shop"} 99.0'
        in text
    )
    assert 'replicator_token_expiry_seconds{cluster="west",topology="shop"} 12.0' in text
    assert 'cluster="west",kind="token"' not in text
