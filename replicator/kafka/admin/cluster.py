"""The cluster as a whole: its id, its brokers, and what our user may do with it."""

from dataclasses import dataclass

from confluent_kafka.admin import ConfigResource

from replicator.kafka.admin.session import AdminSession


@dataclass(frozen=True, slots=True)
class Broker:
    """One broker as it advertises itself."""

    id: int
    host: str
    port: int
    rack: str | None


@dataclass(frozen=True, slots=True)
class ClusterDescription:
    """``controller`` is a broker id, None while there is none; operations as for a topic."""

    cluster_id: str
    brokers: tuple[Broker, ...]
    controller: int | None
    authorized_operations: frozenset[str]


def describe_cluster(session: AdminSession) -> ClusterDescription:
    """Asks for the cluster's id, brokers and controller, and for our rights on it."""
    answer = session.result(
        lambda: session.client.describe_cluster(
            include_authorized_operations=True, request_timeout=session.timeout_seconds
        ),
        "describe the cluster",
    )
    return ClusterDescription(
        cluster_id=answer.cluster_id or "",
        brokers=tuple(
            Broker(node.id, node.host, node.port, node.rack)
            for node in sorted(answer.nodes, key=lambda node: node.id)
        ),
        controller=None if answer.controller is None else answer.controller.id,
        authorized_operations=frozenset(each.name for each in answer.authorized_operations or ()),
    )


def broker_settings(session: AdminSession, broker: int) -> dict[str, str | None]:
    """All settings of a broker; None where it keeps the value to itself, as it does of an authorizer's."""
    resource = ConfigResource(ConfigResource.Type.BROKER, str(broker))
    answer = session.result(
        lambda: session.client.describe_configs(
            [resource], request_timeout=session.timeout_seconds
        )[resource],
        f"read the settings of broker {broker}",
    )
    return {name: entry.value for name, entry in answer.items()}
