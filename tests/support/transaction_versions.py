"""The version of transactions that a cluster has finalized."""

import time

from replicator.testing import wait_until
from replicator.topology.plan import ClusterPlan
from replicator.wire.connection.leader import any_broker
from replicator.wire.connection.protocol import ApiVersionsRequest


def transaction_version(cluster) -> int:
    deadline = time.monotonic() + 30
    plan = ClusterPlan(cluster.name, tuple(cluster.bootstrap_servers))
    request = ApiVersionsRequest(client_software_name="tests", client_software_version="1")
    with any_broker(plan, client_id="tests", deadline=deadline) as broker:
        answer = broker.call(request, newest=3, deadline=deadline)
    return {each.name: each.max_version_level for each in answer.finalized_features}[
        "transaction.version"
    ]


def use_transaction_version(cluster, wanted: int) -> None:
    """Finalizes the version for the whole cluster, down from what it begins with."""
    from kafka.protocol.admin import UpdateFeaturesRequest

    if transaction_version(cluster) == wanted:
        return
    deadline = time.monotonic() + 30
    plan = ClusterPlan(cluster.name, tuple(cluster.bootstrap_servers))
    update = UpdateFeaturesRequest.FeatureUpdateKey(
        feature="transaction.version", max_version_level=wanted, upgrade_type=2
    )
    with any_broker(plan, client_id="tests", deadline=deadline) as broker:
        answer = broker.call(
            UpdateFeaturesRequest(timeout_ms=20_000, feature_updates=[update]),
            newest=1, deadline=deadline,
        )  # fmt: skip
    assert not answer.error_code, answer
    wait_until(
        lambda: transaction_version(cluster) == wanted,
        timeout_seconds=30,
        describe=lambda: f"transaction.version {wanted}",
    )
