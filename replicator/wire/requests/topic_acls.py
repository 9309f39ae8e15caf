"""Reading the rights on topics, with the reason where they cannot be read.

confluent-kafka answers with an empty list where the cluster has no authorizer or refuses us (2.16):
that nobody has a right and that nobody told us must not look the same.
"""

import time

from replicator.policy.copies.acl_rules import TOPIC, AclBinding, Pattern, Permission
from replicator.topology.plan import ClusterPlan
from replicator.wire.connection.errors import code_error
from replicator.wire.connection.leader import any_broker
from replicator.wire.connection.protocol import DescribeAclsRequest
from replicator.wire.requests.acl_operations import OPERATIONS

_VERSION = 3
_ANY = 1
_TOPIC = 2
_PATTERNS: dict[int, Pattern] = {3: "LITERAL", 4: "PREFIXED"}
_PERMISSIONS: dict[int, Permission] = {2: "DENY", 3: "ALLOW"}


def topic_acls(cluster: ClusterPlan, *, timeout_seconds: float = 10.0) -> frozenset[AclBinding]:
    """Every right on topics; patterns of kinds that this release does not know are left out.

    Raises:
        AuthorizerMissingError: the cluster has no authorizer.
        NotAuthorizedError: our user lacks DESCRIBE on the cluster.
        ReplicatorError: the cluster cannot be reached, or refuses our login.
    """
    deadline = time.monotonic() + timeout_seconds
    wanted = DescribeAclsRequest(
        resource_type_filter=_TOPIC, resource_name_filter=None, pattern_type_filter=_ANY,
        principal_filter=None, host_filter=None, operation=_ANY, permission_type=_ANY,
    )  # fmt: skip
    with any_broker(cluster, client_id="replicator-acls", deadline=deadline) as connection:
        answer = connection.call(wanted, newest=_VERSION, deadline=deadline)
    if answer.error_code:
        raise code_error(
            answer.error_code, subject=f"cluster:{cluster.alias}", doing="read the ACLs"
        )
    return frozenset(
        AclBinding(
            resource=TOPIC,
            pattern=_PATTERNS[resource.pattern_type],
            name=resource.resource_name,
            principal=one.principal,
            host=one.host,
            operation=OPERATIONS.get(one.operation, "UNKNOWN"),
            permission=_PERMISSIONS[one.permission_type],
        )
        for resource in answer.resources
        for one in resource.acls
        if resource.pattern_type in _PATTERNS and one.permission_type in _PERMISSIONS
    )
