"""A worker's place in the group: lost for good, it is given up, and the owner of the place joins anew."""

import pytest

from replicator.dataplane.process.membership import Membership
from replicator.errors import ReplicatorError
from replicator.testing import wait_until
from replicator.topology.plan import ClusterPlan


@pytest.fixture
def join(west, unique):
    joined = []
    west.create_topic(unique, partitions=2)

    def join(name):
        lanes, problems = set(), []
        member = Membership(
            cluster=ClusterPlan("west", tuple(west.bootstrap_servers)), group=unique, topic=unique,
            client_id="test", instance_id=name, on_assigned=lanes.update,
            on_revoked=lambda given_up, _lost: lanes.difference_update(given_up),
            on_problem=lambda error: problems.append(error) if error else None,
        )  # fmt: skip
        joined.append(member)
        member.start()
        return member, lanes, problems

    yield join
    for member in joined:
        member.stop(10)


def test_a_named_worker_whose_name_was_taken_ends_its_membership_and_may_join_again(join):
    first, lanes, problems = join("a-name")
    wait_until(lambda: lanes == {0, 1}, timeout_seconds=60, describe="the lanes of the first")
    first.require_alive()
    second, taken, _ = join("a-name")
    wait_until(lambda: taken == {0, 1}, timeout_seconds=60, describe="the lanes of the second")
    wait_until(
        lambda: not first.is_alive(), timeout_seconds=30, describe=lambda: f"its end: {problems}"
    )
    with pytest.raises(ReplicatorError, match="lost its place") as told:
        first.require_alive()
    assert "--worker-id" in told.value.remedy

    second.stop(10)
    _, again, _ = join("a-name")
    wait_until(lambda: again == {0, 1}, timeout_seconds=60, describe="its lanes again")
