"""Users and rights of a local cluster, through its INTERNAL listener."""

from collections.abc import Iterable
from typing import Literal

from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from replicator.errors import BrokerRefusedError, UnreachableError
from replicator.kafka.clients.errors import map_kafka_error
from replicator.testing.kit.waiting import wait_until

Operation = Literal[
    "ALL",
    "READ",
    "WRITE",
    "CREATE",
    "DELETE",
    "ALTER",
    "DESCRIBE",
    "CLUSTER_ACTION",
    "DESCRIBE_CONFIGS",
    "ALTER_CONFIGS",
    "IDEMPOTENT_WRITE",
]
Resource = Literal["topic", "group", "cluster", "transactional-id"]

_TIMEOUT_SECONDS = 15.0
_ITERATIONS = 4096  # the least Kafka takes; these passwords guard nothing
_RESOURCES = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "cluster": ResourceType.BROKER,  # confluent-kafka's name for the cluster resource
    "transactional-id": ResourceType.TRANSACTIONAL_ID,
}


def put_scram_user(admin: AdminClient, *, user: str, password: str, mechanism: str) -> None:
    """Creates a SCRAM user or changes its password.

    Raises:
        BrokerRefusedError: the broker said no.
    """
    kind = (
        ScramMechanism.SCRAM_SHA_256 if mechanism.endswith("256") else ScramMechanism.SCRAM_SHA_512
    )
    change = UserScramCredentialUpsertion(
        user, ScramCredentialInfo(kind, _ITERATIONS), password.encode()
    )
    future = admin.alter_user_scram_credentials([change], request_timeout=_TIMEOUT_SECONDS)[user]
    try:
        future.result(_TIMEOUT_SECONDS)
    except KafkaException as error:
        raise BrokerRefusedError(
            f"SCRAM user was refused: {error}", subject=f"user {user}"
        ) from error


def create_acls(
    admin: AdminClient,
    *,
    user: str,
    operations: Iterable[Operation],
    resource: Resource,
    name: str,
    prefixed: bool = False,
    deny: bool = False,
) -> None:
    """Adds ACLs on one resource, for all hosts, and waits until the cluster has them.

    Raises:
        BrokerRefusedError: the broker said no.
    """
    acls = [
        AclBinding(
            _RESOURCES[resource],
            name,
            ResourcePatternType.PREFIXED if prefixed else ResourcePatternType.LITERAL,
            f"User:{user}",
            "*",
            AclOperation[operation],
            AclPermissionType.DENY if deny else AclPermissionType.ALLOW,
        )
        for operation in operations
    ]
    for acl, future in admin.create_acls(acls, request_timeout=_TIMEOUT_SECONDS).items():
        try:
            future.result(_TIMEOUT_SECONDS)
        except KafkaException as error:
            raise BrokerRefusedError(f"ACL was refused: {error}", subject=str(acl)) from error
    # The controller answers before the brokers obey.
    wait_until(
        lambda: set(acls) <= set(_acls(admin, user)),
        timeout_seconds=_TIMEOUT_SECONDS,
        describe=f"ACLs of {user} in force",
    )


def delete_acls(admin: AdminClient, *, user: str) -> int:
    """Removes every ACL of a user and waits until they are gone; returns how many there were."""
    everything = _every_acl_of(user)
    future = admin.delete_acls([everything], request_timeout=_TIMEOUT_SECONDS)[everything]
    removed = set(future.result(_TIMEOUT_SECONDS))
    wait_until(
        lambda: removed.isdisjoint(_acls(admin, user)),
        timeout_seconds=_TIMEOUT_SECONDS,
        describe=f"ACLs of {user} gone",
    )
    return len(removed)


def _acls(admin: AdminClient, user: str) -> list[AclBinding]:
    """Those of the user; asked again where the question was lost with its connection."""

    def told() -> list[list[AclBinding]]:
        asked = admin.describe_acls(_every_acl_of(user), request_timeout=_TIMEOUT_SECONDS)
        try:
            return [list(asked.result(_TIMEOUT_SECONDS))]
        except KafkaException as error:
            if not isinstance(
                map_kafka_error(error.args[0], subject=user, doing="read ACLs"), UnreachableError
            ):
                raise
            return []

    (acls,) = wait_until(told, timeout_seconds=_TIMEOUT_SECONDS, describe=f"the ACLs of {user}")
    return acls


def _every_acl_of(user: str) -> AclBindingFilter:
    return AclBindingFilter(
        ResourceType.ANY,
        None,  # type: ignore[arg-type]  # None is "any"; the annotation leaves it out
        ResourcePatternType.ANY,
        f"User:{user}",
        None,  # type: ignore[arg-type]  # same
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
