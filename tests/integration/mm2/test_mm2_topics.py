"""MirrorMaker 2's topics on a real cluster: made once, and never somebody else's."""

import pytest

from replicator.errors import RefusedError
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.mm2.topics.topics import ensure_mm2_topic
from replicator.topology.plan import ClusterPlan


@pytest.fixture
def admin(east):
    cluster = ClusterPlan("east", tuple(east.bootstrap_servers))
    with ClusterAdmin(cluster, client_id="test-mm2") as admin:
        yield admin


def test_a_topic_is_made_compacted_with_one_partition_and_kept(admin, unique):
    for _ in range(2):
        ensure_mm2_topic(admin, unique)
    assert admin.describe_topics([unique])[unique].partitions == 1
    assert admin.topic_configs([unique])[unique]["cleanup.policy"].value == "compact"


def test_a_topic_with_data_that_only_has_the_name_is_left_alone(admin, unique, east):
    east.create_topic(unique, partitions=4)
    with pytest.raises(RefusedError, match="is not MirrorMaker 2's") as refused:
        ensure_mm2_topic(admin, unique)
    assert "Rename it" in refused.value.remedy
