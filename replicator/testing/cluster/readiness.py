"""When a cluster that was started can be worked with."""

from collections.abc import Callable, Sequence

from confluent_kafka.admin import AdminClient

from replicator.testing.cluster import topics
from replicator.testing.cluster.brokers.broker import Broker
from replicator.testing.kit.ports import answers
from replicator.testing.kit.waiting import NotInTimeError, wait_until


def wait_ready(
    name: str,
    brokers: Sequence[Broker],
    admin: AdminClient,
    *,
    timeout_seconds: float,
    log_tail: Callable[[], str],
) -> None:
    """Waits until every running broker serves and knows of the others.

    Raises:
        NotInTimeError: none runs, one ended, or they did not get ready; with the logs.
    """
    running = [broker for broker in brokers if broker.running]
    if not running:
        raise NotInTimeError(f"no broker is running\n{log_tail()}", subject=name)

    def ready() -> bool:
        for broker in running:
            if not broker.running:
                raise NotInTimeError(
                    f"broker {broker.node_id} ended while it was waited for:\n{log_tail()}",
                    subject=name,
                )
            if not answers(broker.ports.client, broker.place.client_host):
                return False
        return topics.live_brokers(admin) >= len(running)

    wait_until(
        ready,
        timeout_seconds=timeout_seconds,
        describe=lambda: f"cluster {name} to be ready\n{log_tail()}",
    )
