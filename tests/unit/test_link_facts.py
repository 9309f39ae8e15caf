"""What stands between a link and its normal course, by the control topics that are visible."""

import pytest
from topology_files import active_passive, plan_of

from replicator.control.records.role_records import (
    FenceRecord,
    ReturnProblem,
    ReturnRecord,
    TransitionRecord,
)
from replicator.control.roles.figures import link_metrics
from replicator.control.roles.link_facts import link_facts
from replicator.control.store.state import EMPTY
from replicator.observability.snapshot import LinkMetrics
from replicator.topology.roles import Role

LINK = plan_of(active_passive(["orders"])).link("dr")
PROMOTED = Role("dr", 1, 0, "west", "promoted", since_ms=100)


def state(*records):
    return EMPTY.fold([one.encode() for one in records])


def fence(cluster, epoch, *, at_ms=150):
    return FenceRecord(
        link="dr", cluster=cluster, method="acl", state="held", epoch=epoch, at_ms=at_ms, by="ann"
    )


def opened(at_ms=1_000):
    return TransitionRecord(
        link="dr", id="1", kind="failback", state="open", source="west", target="east",
        home="west", token="t", at_ms=at_ms, by="ann", base_epoch=1,
    )  # fmt: skip


def codes(facts):
    return [one.code for one in facts.problems]


def test_an_open_transition_has_an_age_until_it_ends():
    facts = link_facts([state(opened())], LINK, PROMOTED)
    figures = link_metrics(LINK, PROMOTED, None, facts, now_ms=61_000)
    assert (figures.open_kind, figures.open_seconds) == ("failback", 60.0)
    done = state(opened().model_copy(update={"state": "done"}))
    ended = link_metrics(LINK, PROMOTED, None, link_facts([done], LINK, PROMOTED), now_ms=61_000)
    assert ended == LinkMetrics(
        "dr", 1, {"east": "passive", "west": "active"}, problem_codes=[], fences=[]
    )


@pytest.mark.parametrize(
    ("record", "shown"),
    [
        (fence("east", 0), True),  # of the switchover that made it passive
        (fence("east", 1), True),
        (fence("east", -1), True),  # of a release before
        (fence("west", 0), False),  # of a time when it was passive
        (fence("west", -1, at_ms=50), False),
    ],
)
def test_a_fence_is_shown_as_long_as_it_is_about_the_role_in_force(record, shown):
    facts = link_facts([state(record)], LINK, PROMOTED)
    assert [one.cluster for one in facts.fences] == [record.cluster] * shown
    assert codes(facts) == []


def test_a_fence_on_the_active_cluster_is_a_problem_once_no_transition_explains_it():
    left = fence("west", 1)
    assert codes(link_facts([state(left)], LINK, PROMOTED)) == ["ACTIVE_FENCED"]
    assert codes(link_facts([state(left, opened())], LINK, PROMOTED)) == []


def test_what_was_found_on_a_returned_cluster_is_about_one_epoch():
    problem = ReturnProblem(code="RETURNED_SHORT", subject="orders/0", detail="d", remedy="r")
    found = ReturnRecord(link="dr", cluster="east", epoch=1, at_ms=1, problems=(problem,))
    assert codes(link_facts([state(found)], LINK, PROMOTED)) == ["RETURNED_SHORT"]
    later = Role("dr", 2, 0, "west", "promoted")
    assert link_facts([state(found)], LINK, later).returned is None
    mirroring = Role("dr", 1, 3, "west", "mirroring")
    assert codes(link_facts([state(found)], LINK, mirroring)) == []


def test_a_conflict_is_a_problem_of_the_link():
    conflict = Role("dr", 1, 0, "west", "conflict", reason="east")
    assert codes(link_facts([], LINK, conflict)) == ["ROLE_CONFLICT"]
