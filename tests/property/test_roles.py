"""Roles: which flow of a link runs, by whatever records are visible in whatever order."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from topology_files import active_passive, plan_of

from replicator.control.lanes.lane_specs import allowed_by_role, lane_may_start
from replicator.control.records.decode import decode_record
from replicator.control.records.pair_records import Layout
from replicator.control.records.role_records import RoleRecord
from replicator.control.store.state import EMPTY
from replicator.failover.rules.next_role import next_role, stands
from replicator.topology.roles import COPYING, Role, first_role, orient, role_in_force

PLAN = plan_of(
    active_passive(["orders"]),
    active_passive(["logs"], name="logs", active="west", passive="east"),
)
LINK = PLAN.link("dr")
STATES = ("mirroring", "fencing", "draining", "verifying", "declared", "promoting", "promoted",
          "salvaging", "realigning")  # fmt: skip
ROLES = st.builds(
    Role,
    link=st.just("dr"),
    epoch=st.integers(0, 3),
    revision=st.integers(0, 3),
    active=st.sampled_from(["east", "west"]),
    state=st.sampled_from(STATES),
)


@given(st.lists(ROLES, max_size=6))
def test_never_do_both_directions_run_and_only_the_active_side_is_copied_from(seen):
    role = role_in_force(LINK, seen)
    flows = [flow for flow in orient(PLAN, {"dr": role}).flows if flow.link == "dr"]
    assert len(flows) <= 1
    assert all(flow.source == role.active for flow in flows)
    assert bool(flows) == (role.state in COPYING)
    best = max((one.rank for one in seen), default=(0, 0))
    assert role.rank == max(best, (0, 0))


@given(st.lists(ROLES, max_size=5), st.lists(ROLES, max_size=5))
def test_orienting_again_forgets_nothing_of_the_file(first, second):
    once = orient(PLAN, {"dr": role_in_force(LINK, second)})
    twice = orient(
        orient(PLAN, {"dr": role_in_force(LINK, first)}), {"dr": role_in_force(LINK, second)}
    )
    assert {flow.id for flow in once.link("dr").flows} == {
        flow.id for flow in twice.link("dr").flows
    }
    assert once.hash == PLAN.hash


def test_two_claims_of_one_epoch_stop_both_directions():
    east = Role("dr", 2, 0, "east", "mirroring")
    role = role_in_force(LINK, [east, replace(east, active="west")])
    assert role.state == "conflict"
    assert not [flow for flow in orient(PLAN, {"dr": role}).flows if flow.link == "dr"]


@given(ROLES, ROLES)
def test_a_flow_ends_when_its_target_holds_a_newer_role_against_it(mine, theirs):
    plan = orient(PLAN, {"dr": role_in_force(LINK, [mine])})
    record = RoleRecord(
        link="dr", epoch=theirs.epoch, revision=theirs.revision, active=theirs.active,
        state=theirs.state, since=1, by="ann",
    )  # fmt: skip
    control = EMPTY.fold([record.encode()])
    for flow in plan.link("dr").flows:
        allowed = allowed_by_role(control, flow)
        if theirs.rank >= flow.role_version and not theirs.lets(flow.source):
            assert not allowed
        if theirs.rank < flow.role_version:
            assert allowed


def test_a_lane_that_starts_after_the_fence_reads_the_role_and_ends():
    from replicator.control.lanes.lane_specs import lane_settings
    from replicator.dataplane.transport.spec import LaneSpec

    flow = LINK.flows[0]
    spec = LaneSpec(
        "shop", "dr", PLAN.cluster("east"), PLAN.cluster("west"), 0, 1,
        lane_settings(PLAN, flow), (),
    )  # fmt: skip
    layout = Layout(source="east", epoch=1, state="stable", blocks=(), total=1)
    control = EMPTY.fold([layout.encode()])
    assert lane_may_start(control, spec)
    turned = RoleRecord(link="dr", epoch=1, active="west", state="promoting", since=1, by="ann")
    assert not lane_may_start(control.fold([turned.encode()]), spec)


@given(ROLES, st.sampled_from(["east", "west"]), st.sampled_from(STATES))
def test_the_next_role_always_outranks_the_one_before(now, active, state):
    record = next_role(
        now, active=active, state=state, at_ms=5, by="ann", reason="", transition="t"
    )
    assert record.role().rank > now.rank
    assert (record.epoch > now.epoch) == (active != now.active)
    assert stands(record, active=active, state=state, transition="t")
    key, value = record.encode()
    assert decode_record(key, value) == (("role", ("dr",)), record)


def test_the_way_back_rests_until_a_role_says_otherwise():
    assert [pair.id for pair in PLAN.pairs] == ["east->west", "west->east"]
    assert [flow.link for flow in PLAN.pairs[1].standby] == ["dr"]
    turned = orient(PLAN, {"dr": replace(first_role(LINK), epoch=1, active="west")})
    assert [pair.id for pair in turned.pairs] == ["west->east"]
    assert {flow.link for flow in turned.pairs[0].flows} == {"dr", "logs"}
