"""Adding rights on topics and taking them away. Reading them is ``wire.requests.topic_acls``: the library hides why it cannot."""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from confluent_kafka.admin import AclBinding as LibraryBinding
from confluent_kafka.admin import (
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from replicator.errors import ReplicatorError
from replicator.kafka.admin.session import AdminSession
from replicator.policy.copies.acl_rules import AclBinding

if TYPE_CHECKING:
    from concurrent.futures import Future


def create_acls(
    session: AdminSession, bindings: Iterable[AclBinding]
) -> dict[AclBinding, ReplicatorError | None]:
    """Adds rights; one that is there already counts as done.

    Raises:
        AuthenticationFailedError: and other errors that concern no single right.
    """
    return _each(
        session, LibraryBinding, bindings, session.client.create_acls, doing="add an ACL on"
    )


def delete_acls(
    session: AdminSession, bindings: Iterable[AclBinding]
) -> dict[AclBinding, ReplicatorError | None]:
    """Takes exactly these rights away; one that is not there counts as done.

    Raises:
        AuthenticationFailedError: and other errors that concern no single right.
    """
    return _each(
        session, AclBindingFilter, bindings, session.client.delete_acls, doing="delete an ACL on"
    )


def _each(
    session: AdminSession,
    kind: type[LibraryBinding | AclBindingFilter],
    bindings: Iterable[AclBinding],
    send: Callable[..., Mapping[Any, "Future[Any]"]],
    *,
    doing: str,
) -> dict[AclBinding, ReplicatorError | None]:
    """Sends ours as the library's ``kind``; a filter that names everything matches exactly one binding."""
    asked = {
        kind(
            ResourceType[one.resource],
            one.name,
            ResourcePatternType[one.pattern],
            one.principal,
            one.host,
            AclOperation[one.operation],
            AclPermissionType[one.permission],
        ): one
        for one in sorted(set(bindings))
    }
    answers = session.each(
        list(asked),
        lambda chunk: send(chunk, request_timeout=session.timeout_seconds),
        doing=lambda one: f"{doing} topic {one.name}",
    )
    return {
        asked[key]: answer if isinstance(answer, ReplicatorError) else None
        for key, answer in answers.items()
    }
