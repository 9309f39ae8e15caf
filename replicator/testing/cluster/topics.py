"""Topics of a local cluster: made, removed and counted through an admin client."""

import contextlib
from collections.abc import Mapping

from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from replicator.errors import BrokerRefusedError
from replicator.testing.kit.waiting import wait_until

_TIMEOUT_SECONDS = 30.0


def live_brokers(admin: AdminClient) -> int:
    """How many brokers the cluster counts as alive; zero when no broker answers."""
    try:
        return len(admin.list_topics(timeout=2.0).brokers)
    except KafkaException:
        return 0


def create_topic(
    admin: AdminClient, *, name: str, partitions: int, config: Mapping[str, str]
) -> None:
    """Creates a topic with the cluster's default replication factor and waits for its leaders.

    Metadata names a leader before that broker knows of it and accepts writes; a writer's first
    requests would be refused, and what it writes next may be stored before them.

    Raises:
        BrokerRefusedError: it exists, or the broker said no.
    """
    wanted = NewTopic(name, num_partitions=partitions, replication_factor=-1, config=dict(config))
    wait_until(
        lambda: _created(admin, wanted),
        timeout_seconds=_TIMEOUT_SECONDS,
        describe=f"enough live brokers for {name}",
    )
    wait_until(
        lambda: (
            _partitions_with_leader(admin, name) == partitions
            and _leaders_answer(admin, name, partitions)
        ),
        timeout_seconds=_TIMEOUT_SECONDS,
        describe=f"leaders for all partitions of {name}",
    )


def _created(admin: AdminClient, wanted: NewTopic) -> bool:
    """Creates it; not where brokers do not count as alive: a busy machine makes one late for a moment."""
    name = wanted.topic
    try:
        admin.create_topics([wanted], request_timeout=_TIMEOUT_SECONDS)[name].result(
            _TIMEOUT_SECONDS
        )
    except KafkaException as error:
        if error.args[0].code() == KafkaError.INVALID_REPLICATION_FACTOR:
            return False
        raise BrokerRefusedError(f"topic was not created: {error}", subject=name) from error
    return True


def delete_topic(admin: AdminClient, *, name: str) -> None:
    """Deletes a topic and waits until no broker lists it.

    Raises:
        BrokerRefusedError: it does not exist, or the broker said no.
    """
    try:
        admin.delete_topics([name], request_timeout=_TIMEOUT_SECONDS)[name].result(_TIMEOUT_SECONDS)
    except KafkaException as error:
        raise BrokerRefusedError(f"topic was not deleted: {error}", subject=name) from error
    wait_until(
        lambda: name not in admin.list_topics(timeout=_TIMEOUT_SECONDS).topics,
        timeout_seconds=_TIMEOUT_SECONDS,
        describe=f"topic {name} to be gone",
    )


def _partitions_with_leader(admin: AdminClient, name: str) -> int:
    with contextlib.suppress(KafkaException):
        found = admin.list_topics(topic=name, timeout=_TIMEOUT_SECONDS).topics.get(name)
        if found is not None and found.error is None:
            return sum(each.leader >= 0 for each in found.partitions.values())
    return 0


def _leaders_answer(admin: AdminClient, name: str, partitions: int) -> bool:
    latest: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # the library's gap
    asked = {TopicPartition(name, number): latest for number in range(partitions)}
    answers = admin.list_offsets(asked, request_timeout=_TIMEOUT_SECONDS)
    with contextlib.suppress(KafkaException):
        # Whatever it holds: a writer may have waited for the topic and written already.
        return all(answer.result(_TIMEOUT_SECONDS).offset >= 0 for answer in answers.values())
    return False
