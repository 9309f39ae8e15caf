"""What a lane says of a long line to its target that loss will slow down."""

from session_lab import SessionLab

from replicator.dataplane.health.connection_problems import ConnectionProblems
from replicator.dataplane.lane.lane_report import LaneReport
from replicator.dataplane.progress.lane_counters import LaneCounters
from replicator.logins.cluster_login import login_of
from replicator.policy.capacity.line_settings import NEAR_SECONDS, OFFER_BBR


def report(said):
    """What takes the lane's log lines to a list."""
    spec = SessionLab().spec
    return LaneReport(
        lambda: spec, counters=LaneCounters(), post=said.append, states=list,
        problems=ConnectionProblems(source="east", target="west"), on_stats=lambda: None,
        quotas=lambda: (None, None), logins=(login_of(spec.source), login_of(spec.target)),
    )  # fmt: skip


def test_a_lane_warns_once_where_its_host_offers_no_bbr_to_a_target_far_away():
    said = []
    lane = report(said)
    for _ in range(2):
        lane.long_line(0.1, bbr=False)
    (line,) = said
    assert (line.level, line.fields["round_trip"]) == ("warning", "100 ms")
    assert OFFER_BBR in line.fields["remedy"]


def test_nothing_is_said_of_a_target_nearby_nor_where_bbr_bears_the_loss():
    said = []
    lane = report(said)
    lane.long_line(NEAR_SECONDS, bbr=False)
    lane.long_line(0.1, bbr=True)
    assert said == []
