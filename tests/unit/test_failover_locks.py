"""Which open transition has a link, and which were overtaken while their journal was away."""

from dataclasses import replace

import pytest
from topology_files import active_passive, plan_of

from replicator.control.records.role_records import RoleRecord, TransitionRecord
from replicator.control.roles.open_transitions import (
    open_transition,
    others_open,
    overtaken_transitions,
)
from replicator.control.store.state import ControlState
from replicator.errors import InputError, RefusedError
from replicator.failover.rules.directions import directions
from replicator.failover.rules.locks import Lock
from replicator.failover.rules.request import TransitionRequest
from replicator.failover.steps.journal import ROLLBACK_REASON, why_ended
from replicator.topology.roles import Role

PLAN = plan_of(active_passive(["orders"]))
LINK = PLAN.link("dr")


def transition(id_, *, kind="failback", home="west", at_ms=0, base_epoch=1, state="open"):
    return TransitionRecord(
        link="dr", id=id_, kind=kind, state=state, source="west", target="east", home=home,
        token="t", at_ms=at_ms, by="ann", base_epoch=base_epoch,
    )  # fmt: skip


def role(epoch, by_transition, *, active="west", revision=0):
    return RoleRecord(
        link="dr", epoch=epoch, revision=revision, active=active, state="promoted", since=1,
        by="ann", transition=by_transition,
    )  # fmt: skip


def stated(*records):
    return ControlState().fold([record.encode() for record in records])


def test_an_open_transition_holds_its_link_also_after_it_began_an_epoch_itself():
    states = [stated(transition("a"), role(2, "a")), stated()]
    assert open_transition(states, "dr").id == "a"
    assert overtaken_transitions(states, "dr") == ()
    assert open_transition(states, "other") is None


def test_an_epoch_of_another_transition_ends_the_authority_of_an_open_one():
    # Its journal stood on a side that was lost; the other side was promoted; the side is back.
    states = [stated(transition("a"), role(1, "a")), stated(role(2, "b", active="east"))]
    assert open_transition(states, "dr") is None
    assert [one.id for one in overtaken_transitions(states, "dr")] == ["a"]


def test_an_epoch_from_before_it_began_takes_nothing_from_it():
    states = [stated(transition("a", base_epoch=2), role(2, "b"))]
    assert open_transition(states, "dr").id == "a"


def test_of_several_that_are_open_the_one_begun_last_has_the_link():
    states = [stated(transition("a", at_ms=1)), stated(transition("b", at_ms=2))]
    assert open_transition(states, "dr").id == "b"
    assert others_open(states, transition("b", at_ms=2)).id == "a"
    assert others_open([stated(transition("b"))], transition("b")) is None


def test_ended_ones_hold_nothing():
    for state in ("done", "rolled-back", "superseded"):
        assert open_transition([stated(transition("a", state=state))], "dr") is None


@pytest.mark.parametrize("kind", ["switchover", "failover", "failback"])
def test_a_refused_operator_is_offered_what_the_command_can_do(kind):
    refused = Lock(transition("a", kind=kind)).refusal(60_000)
    assert "begun by ann 1.0 min ago" in refused.message
    assert f"replicator {kind} --link dr --resume" in refused.remedy
    assert ("--rollback" in refused.remedy) == (kind != "failover")  # it has no such option


def test_why_a_transition_is_rolled_back_is_kept_with_it():
    one = transition("a").model_copy(update={"options": {ROLLBACK_REASON: "a hook failed"}})
    assert why_ended(one) == "a hook failed"
    assert why_ended(transition("a")) == ""
    (again,) = stated(one).transitions("dr")
    assert why_ended(again) == "a hook failed"


def asked(kind, to=None):
    return TransitionRequest(kind=kind, link="dr", by="ann", to=to)


MIRRORING = Role("dr", 0, 0, "east", "mirroring")


def test_a_link_of_two_clusters_turns_to_the_other_one_named_or_not():
    for kind in ("switchover", "failover", "failback"):
        for to in ("west", None):
            found = directions(LINK, MIRRORING, asked(kind, to), silent=frozenset())
            assert found == ("east", "west")
    with pytest.raises(InputError, match="'south' is not a cluster of link 'dr'"):
        directions(LINK, MIRRORING, asked("switchover", "south"), silent=frozenset())
    with pytest.raises(RefusedError, match="east is the active cluster already"):
        directions(LINK, MIRRORING, asked("failover", "east"), silent=frozenset())


def test_a_side_whose_writers_an_unfinished_change_fences_can_be_promoted_when_the_other_is_lost():
    for state in ("fencing", "draining", "verifying"):
        unfinished = replace(MIRRORING, state=state, revision=2)
        lost = directions(LINK, unfinished, asked("failover", "east"), silent=frozenset({"west"}))
        assert lost == ("west", "east")
        with pytest.raises(RefusedError):  # the other side has the journal: resume it
            directions(LINK, unfinished, asked("failover", "east"), silent=frozenset())
        with pytest.raises(RefusedError):
            directions(LINK, unfinished, asked("switchover", "east"), silent=frozenset({"west"}))
    with pytest.raises(RefusedError):  # nobody keeps writers off: there is nothing to mend
        directions(LINK, MIRRORING, asked("failover", "east"), silent=frozenset({"west"}))
    fenced = directions(
        LINK, MIRRORING, asked("failover", "east"), silent=frozenset({"west"}), fenced=True
    )
    assert fenced == ("west", "east")


def test_a_conflict_is_decided_by_a_failover_to_either_side():
    conflict = replace(MIRRORING, state="conflict")
    for to, left in (("east", "west"), ("west", "east")):
        assert directions(LINK, conflict, asked("failover", to), silent=frozenset()) == (left, to)
    with pytest.raises(RefusedError, match="ROLE_CONFLICT"):
        directions(LINK, conflict, asked("switchover", "west"), silent=frozenset())
    with pytest.raises(RefusedError, match="east and west both claim epoch 0"):
        directions(LINK, conflict, asked("failover"), silent=frozenset())


def test_where_no_cluster_is_active_the_flows_are_named_to_choose_from():
    mesh = replace(LINK, flows=(*LINK.flows, replace(LINK.flows[0], source="west", target="east")),
                   standby=(), shape="active-active", active=None)  # fmt: skip
    with pytest.raises(InputError, match="has several flows") as refused:
        directions(mesh, MIRRORING, asked("switchover"), silent=frozenset())
    assert "--from and --to of one of them" in refused.value.remedy
    assert directions(mesh, MIRRORING, asked("switchover", "west"), silent=frozenset()) == (
        "east", "west",
    )  # fmt: skip
