"""Brokers that are up and know of no live broker, as in the middle of a rolling upgrade or under heavy load.

Their answer to a metadata request names topics and no broker. After it a client of librdkafka forgets every broker
that it knew, and now and then never asks its bootstrap servers again, without a word (librdkafka issue 5301).
"""

import time

import pytest

from replicator.cli.main import run_command
from replicator.testing import wait_until
from replicator.testing.faults.protocol_proxy import ProtocolProxy
from replicator.testing.faults.protocol_rules import Api, Match, NameNoBrokers, Rule

FLOW = "east->west"
WITHOUT_BROKERS = Rule(Match(Api.METADATA, times=None), NameNoBrokers())
REFRESH_SECONDS = 65.0
"""Every client asks once in this time, also one that has no other reason to."""


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("sides", "flow"),
    [
        ("both", {"engine": "batches", "delivery": "exactly-once"}),
        ("both", {"engine": "records", "delivery": "exactly-once"}),
        ("source", {"engine": "records", "delivery": "exactly-once"}),
        ("target", {"engine": "records", "delivery": "at-least-once"}),
    ],
    ids=["batches", "records", "records-source", "at-least-once-target"],
)
def test_workers_go_on_after_brokers_that_knew_of_no_broker(east, west, scene, sides, flow):
    with (
        ProtocolProxy(east.bootstrap_servers) as at_east,
        ProtocolProxy(west.bootstrap_servers) as at_west,
    ):
        scene.behind(east, at_east)
        scene.behind(west, at_west)
        scene.active_passive(east, west, **flow)
        scene.guarantee = flow["delivery"]
        broken = {"source": [at_east], "target": [at_west]}.get(sides, [at_east, at_west])
        scene.writer(east, rate=100)
        worker = scene.worker()
        scene.copying(FLOW)
        for proxy in broken:
            proxy.play([WITHOUT_BROKERS])
        begun = time.monotonic()
        wait_until(
            lambda: time.monotonic() - begun > REFRESH_SECONDS,
            timeout_seconds=REFRESH_SECONDS + 10,
            describe="every client to have asked",
        )
        for proxy in broken:
            assert proxy.applied(WITHOUT_BROKERS) > 3
            proxy.play([])
        scene.copying(FLOW)
        for verb, state in (("pause", "paused"), ("resume", "replicating")):
            assert run_command([verb, "--flow", FLOW, "-f", str(scene.topology())]) == 0
            wait_until(
                lambda state=state: worker.status()[FLOW]["state"] == state,
                timeout_seconds=60,
                describe=lambda: f"{worker.status()}\n{worker.log_tail()}",
            )
        scene.copying(FLOW)
        scene.settled()
