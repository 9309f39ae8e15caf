"""What a cluster's brokers are set to."""

from confluent_kafka.admin import ConfigResource

from replicator.kafka.admin.session import AdminSession


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
