"""What the controller's duties count is told by the worker that runs it."""

import pytest
from lane_lab import LaneLab

from replicator.testing import commit_positions


@pytest.fixture
def stand(worker, east, west):
    """A worker that syncs one group of one topic; ``stand(offset)`` sets its position on the source."""
    lab = LaneLab(east, west, name=worker.name)
    topic = lab.topic(on_target=False)
    lab.numbered(topic, range(10))

    def commit(offset):
        commit_positions(east, worker.name, {(topic, 0): offset})

    commit(5)
    worker.cluster(east)
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
