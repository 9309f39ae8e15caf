"""The cluster that a failover left: somebody watches it, fences it, and judges what it has."""

import time

import pytest
from link_lab import failed

from replicator.clock import SystemClock
from replicator.control.roles.watch import RoleWatch
from replicator.control.status.collect import collect_status
from replicator.control.store.followers import ControlFollowers
from replicator.failover.run.return_watch import ReturnWatch
from replicator.testing import wait_until

NOTICED_SECONDS = 10.0


@pytest.fixture
def watched():
    """Watches a lab's link as a worker does; ended after the test."""
    ends = []

    def begin(lab):
        followers = ControlFollowers("test")
        roles = RoleWatch(lab.plan, followers, on_change=lambda: None)
        roles.begin(10.0)
        watch = ReturnWatch(
            lab.plan, lab.plan.link("dr"), role=lambda: roles.roles()["dr"],
            states=lambda: followers.states(lab.name), clock=SystemClock(),
        )  # fmt: skip
        watch.start()
        ends.extend((watch.stop, lambda: watch.join(20.0), roles.stop, followers.close))

    yield begin
    for end in ends:
        end()


def seen(lab):
    """The link as status shows it."""
    (one,) = collect_status(lab.plan)["links"]
    return one


def codes(lab):
    return {(one["code"], one["subject"]) for one in seen(lab)["problems"]}


def test_it_is_fenced_when_it_answers_and_a_write_there_is_reported_in_time(
    link, watched, tmp_path
):
    mark = tmp_path / "fenced"
    lab = link(fencing={"method": "command", "fence": ["touch", str(mark)], "unfence": ["true"]})
    lab.apply({0: 5, 1: 5}, records=5)
    lab.role("west", "promoted", 1)
    lab.write(lab.east, 2)  # after the failover, before anybody looked
    watched(lab)
    wait_until(
        lambda: ("SPLIT_BRAIN", f"{lab.topic}/0") in codes(lab),
        timeout_seconds=30.0, describe="the write before the first look",
    )  # fmt: skip
    assert mark.exists()
    shown = seen(lab)
    assert (shown["returned"]["tailRecords"], shown["returned"]["fence"]) == (2, "command")
    assert [one["cluster"] for one in shown["fences"]] == ["east"]
    lab.write(lab.east, 1, partition=1)
    began = time.monotonic()
    wait_until(
        lambda: ("SPLIT_BRAIN", f"{lab.topic}/1") in codes(lab),
        timeout_seconds=30.0, interval_seconds=0.5, describe="the write to be reported",
    )  # fmt: skip
    assert time.monotonic() - began < NOTICED_SECONDS


def test_one_that_cannot_be_fenced_is_a_problem_until_it_can(link, watched, tmp_path):
    fence = tmp_path / "fence"
    fence.write_text("#!/bin/sh\nexit 1\n")
    fence.chmod(0o755)
    lab = link(fencing={"method": "command", "fence": [str(fence)], "unfence": ["true"]})
    lab.apply({0: 5, 1: 5}, records=5)
    lab.role("west", "promoted", 1)
    watched(lab)
    wait_until(
        lambda: ("RETURNED_UNFENCED", "dr") in codes(lab),
        timeout_seconds=30.0, interval_seconds=0.5, describe="the fence that failed",
    )  # fmt: skip
    fence.write_text("#!/bin/sh\nexit 0\n")
    wait_until(
        lambda: not codes(lab),
        timeout_seconds=30.0, interval_seconds=0.5, describe="the fence that holds",
    )  # fmt: skip


def test_one_that_lost_what_it_had_given_is_named_and_blocks_failback(link, watched):
    lab = link()
    lab.apply({0: 9, 1: 5}, records=5)
    lab.role("west", "promoted", 1)
    watched(lab)
    wait_until(
        lambda: ("RETURNED_SHORT", f"{lab.topic}/0") in codes(lab),
        timeout_seconds=30.0, describe="the partition to be named",
    )  # fmt: skip
    report = lab.run("failback", and_switch=False, export=lab.directory)
    assert report.outcome == "refused"
    check = failed(report)["returning data"]
    assert "its log ends at 5, and was copied up to 9" in check.detail
    assert "re-seed" in check.remedy


def test_an_open_transition_and_a_conflict_are_shown_until_they_end(link):
    lab = link(fencing={"method": "manual"})
    lab.apply({0: 5, 1: 5}, records=5)
    lab.role("west", "promoted", 1)
    lab.role_on(lab.east, "east", "mirroring", 1)
    assert codes(lab) == {("ROLE_CONFLICT", "dr")}
