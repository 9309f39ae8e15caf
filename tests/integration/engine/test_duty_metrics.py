"""What the controller's duties count is told by the worker that runs it."""

from confluent_kafka import Consumer, TopicPartition
from lane_lab import LaneLab


def test_the_controller_of_a_flow_tells_how_its_groups_were_translated(worker, east, west):
    lab = LaneLab(east, west, name=worker.name)
    topic = lab.topic(on_target=False)
    lab.numbered(topic, range(10))
    consumer = Consumer({**east.client_settings(), "group.id": worker.name})
    consumer.commit(offsets=[TopicPartition(topic, 0, 5)], asynchronous=False)
    consumer.close()
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
    assert "replicator_group_sync_age_seconds{" in worker.text("/metrics")
    assert 0 <= worker.metric("replicator_group_sync_age_seconds", link="dr") < 60
