"""Consumer groups: which there are. Who is in them, and where they stand, is asked in ``replicator.wire.groups``."""

from replicator.kafka.admin.session import AdminSession
from replicator.kafka.clients.errors import as_kafka_error, map_kafka_error


def list_groups(session: AdminSession) -> tuple[str, ...]:
    """Names of all consumer groups our user may see."""
    answer = session.result(
        lambda: session.client.list_consumer_groups(request_timeout=session.timeout_seconds),
        "list the consumer groups",
    )
    if not answer.valid and answer.errors:
        raise map_kafka_error(
            as_kafka_error(answer.errors[0]),
            subject=session.subject,
            doing="list the consumer groups",
        )
    return tuple(sorted(listing.group_id for listing in answer.valid))
