"""A task of the sink whose cluster is absent says so in the executor's log, and fails within its bound."""

import re
import time

import pytest

from replicator.errors import ReplicatorError
from replicator.identifiers import ClusterAlias
from replicator.kafka.logs import producer_calls
from replicator.spark.sink.options import SinkOptions
from replicator.spark.sink.write_task import TaskOfQuery, write_rows
from replicator.testing.kit.ports import free_ports
from replicator.topology.plan import ClusterPlan


def test_an_absent_cluster_is_reported_and_given_up(monkeypatch, capsys):
    monkeypatch.setattr(producer_calls, "TOLD_SECONDS", 1.0)
    (port,) = free_ports(1)
    away = ClusterPlan(ClusterAlias("west"), (f"127.0.0.1:{port}",))
    options = SinkOptions(away, "shop", "orders", 300, 1_000_000, wait_seconds=3)
    began = time.monotonic()
    with pytest.raises(ReplicatorError) as raised:
        write_rows(options, TaskOfQuery("q", 0, 1), [])
    assert 3 <= time.monotonic() - began < 30
    said = capsys.readouterr().err
    # An attempt takes a second; one that ends a moment earlier is told of after the next one.
    assert re.search(r"query q, task 1: cluster west has not answered for [12] s", said)
    assert f"127.0.0.1:{port}" in said
    assert "\n" not in raised.value.paragraph()
    assert "cluster:west" in raised.value.paragraph()
