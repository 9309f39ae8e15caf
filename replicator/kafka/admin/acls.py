"""Adding rights on topics and taking them away. Reading them is ``wire.topic_acls``: the library hides why it cannot."""

from collections.abc import Iterable, Mapping
from typing import TypeVar

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

_Kind = TypeVar("_Kind", LibraryBinding, AclBindingFilter)


def create_acls(
    session: AdminSession, bindings: Iterable[AclBinding]
) -> dict[AclBinding, ReplicatorError | None]:
    """Adds rights; one that is there already counts as done.

    Raises:
        AuthenticationFailedError: and other errors that concern no single right.
    """
    ours = _as_library(LibraryBinding, bindings)
    answers = session.each(
        list(ours),
        lambda chunk: session.client.create_acls(chunk, request_timeout=session.timeout_seconds),
        doing=lambda one: f"add an ACL on topic {one.name}",
    )
    return _by_binding(ours, answers)


def delete_acls(
    session: AdminSession, bindings: Iterable[AclBinding]
) -> dict[AclBinding, ReplicatorError | None]:
    """Takes exactly these rights away; one that is not there counts as done.

    Raises:
        AuthenticationFailedError: and other errors that concern no single right.
    """
    filters = _as_library(AclBindingFilter, bindings)
    answers = session.each(
        list(filters),
        lambda chunk: session.client.delete_acls(chunk, request_timeout=session.timeout_seconds),
        doing=lambda one: f"take away an ACL on topic {one.name}",
    )
    return _by_binding(filters, answers)


def _as_library(kind: type[_Kind], bindings: Iterable[AclBinding]) -> dict[_Kind, AclBinding]:
    """Ours by the library's; a filter that names everything matches exactly one binding."""
    return {
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


def _by_binding(
    asked: Mapping[_Kind, AclBinding], answers: Mapping[_Kind, object]
) -> dict[AclBinding, ReplicatorError | None]:
    return {
        asked[key]: answer if isinstance(answer, ReplicatorError) else None
        for key, answer in answers.items()
    }
