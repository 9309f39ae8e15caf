"""What the controller's duties count is told by the worker that runs it."""

import pytest
from lane_lab import LaneLab

from replicator.testing import ProtocolProxy, commit_positions
from replicator.testing.faults.protocol_rules import Answer, Api, Match, Rule

COORDINATOR_LOADS = 14


@pytest.fixture
def source(east):
    """The source as the worker reaches it."""
    with ProtocolProxy(east.bootstrap_servers) as proxy:
        yield proxy


@pytest.fixture
def stand(worker, east, west, source):
    """A worker that syncs one group of one topic; ``stand(offset)`` sets its position on the source."""
    lab = LaneLab(east, west, name=worker.name)
    topic = lab.topic(on_target=False)
    lab.numbered(topic, range(10))

    def commit(offset):
        commit_positions(east, worker.name, {(topic, 0): offset})

    commit(5)
    worker.cluster(east)
    worker.clusters[east.name]["bootstrapServers"] = list(source.bootstrap_servers)
    worker.cluster(west)
    worker.link(
        "dr", "east", "west", [topic],
        groups={"include": [worker.name]}, sync={"groups": {"interval": "1s"}},
    )  # fmt: skip
    worker.start()
    worker.until(
        lambda: worker.metric("replicator_group_translation_total", link="dr", grade="exact"),
        "an exact position to be counted",
    )
    return commit


@pytest.mark.usefixtures("stand")
def test_the_controller_of_a_flow_reports_how_its_groups_were_translated(worker):
    assert "replicator_group_sync_age_seconds{" in worker.text("/metrics")
    assert 0 <= worker.metric("replicator_group_sync_age_seconds", link="dr") < 60


def told(worker):
    """Problems of the flow as the command tells them, which knows of no worker's memory."""
    (flow,) = worker.command("status")["flows"]
    return {(each["code"], each["subject"]) for each in flow["problems"]}


def test_a_group_that_is_refused_is_a_problem_of_the_flow_and_does_not_fail_it(worker, stand):
    stand(2)  # back, which the policy does not follow

    worker.until(
        lambda: worker.metric("replicator_problems", link="dr", code="GROUP_REFUSED"),
        "the refused group to be told",
    )
    assert worker.metric("replicator_flow_state", link="dr", state="replicating") == 1
    assert worker.metric("replicator_flow_state", link="dr", state="failed") == 0
    worker.until(
        lambda: ("GROUP_REFUSED", f"group:{worker.name}") in told(worker),
        "the problem in what `status` reads from the control topic",
    )


@pytest.mark.usefixtures("stand")
def test_groups_that_a_broker_does_not_name_are_a_problem_until_it_does(worker, source, east):
    source.play([Rule(Match(Api.LIST_GROUPS, times=None), Answer(COORDINATOR_LOADS))])

    def unseen():
        problems = worker.flow(f"{east.name}->west")["problems"]
        return [each for each in problems if "some groups of" in each["detail"]]

    worker.until(unseen, "the groups that cannot be seen to be told")
    assert unseen()[0]["subject"] == f"cluster:{east.name}"
    assert worker.metric("replicator_flow_state", link="dr", state="replicating") == 1
    source.play([])
    worker.until(lambda: not unseen(), "the problem to end")
