"""Workers that have names, as pods of a StatefulSet: which lanes they hold, and whether they are ready."""

from confluent_kafka import KafkaException

from replicator.testing import wait_until

ALL_LANES = {0, 1, 2, 3}
NOTICED_SECONDS = 45.0


def lanes_by_name(scene, target) -> dict[str, set[int]]:
    """The lanes of each named worker, as the coordinator of their group has it."""
    group = f"__replicator.{scene.name}.east"
    answer = target.admin().describe_consumer_groups([group], request_timeout=30.0)[group]
    try:
        members = answer.result().members
    except KafkaException:
        return {}  # nobody has joined yet
    return {
        member.group_instance_id: {
            place.partition for place in member.assignment.topic_partitions
        }
        for member in members
    }  # fmt: skip


def sharing(scene, target, *names: str) -> dict[str, set[int]]:
    """The lanes of each worker, once all of them are shared out."""
    held: dict[str, set[int]] = {}

    def shared() -> bool:
        held.clear()
        held.update(lanes_by_name(scene, target))
        lanes = sorted(lane for each in held.values() for lane in each)
        return held.keys() == set(names) and all(held.values()) and lanes == sorted(ALL_LANES)

    wait_until(shared, timeout_seconds=60.0, describe=lambda: f"lanes shared out, they are: {held}")
    return dict(held)


def ready(worker, wanted: bool) -> list[str]:
    """Waits until the worker says so; the reasons it gives."""
    said = {}

    def says() -> bool:
        said.update(worker.get("/readyz"))
        return said["ok"] is wanted

    wait_until(
        says, timeout_seconds=NOTICED_SECONDS, describe=lambda: f"ready: {wanted}, but: {said}"
    )
    return said["reasons"]
