"""Groups are listed anew when one comes or goes."""

from replicator.kafka.admin.admin import ClusterAdmin
from replicator.offsets.translation.group_names import GroupNames
from replicator.testing import wait_until
from replicator.topology.plan import ClusterPlan


def test_groups_that_come_and_go_are_seen(east, unique):
    plan = ClusterPlan(east.name, tuple(east.bootstrap_servers))
    with ClusterAdmin(plan, client_id="names", timeout_seconds=30) as admin:
        names = GroupNames(admin, client_id="names")
        for _ in range(3):
            assert names.read() == admin.list_groups()
        assert unique not in names.read()

        east.create_topic(unique)
        admin.commit_offsets({unique: {(unique, 0): (0, "")}})
        wait_until(lambda: unique in names.read(), timeout_seconds=30, describe="a group that came")
        assert names.read() == admin.list_groups()

        admin.delete_groups([unique])
        wait_until(
            lambda: unique not in names.read(), timeout_seconds=30, describe="a group that went"
        )
        assert names.read() == admin.list_groups()
        names.close()
