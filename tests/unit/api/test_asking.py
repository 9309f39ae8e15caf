"""The client side of `replicator check`, against the real server."""

import dataclasses

import pytest

from replicator.api.asking import watch_release
from replicator.errors import InputError
from replicator.observability.health import HealthVerdict
from replicator.testing import ManualClock

LABELS = '{link="orders",flow="east->west"'


@pytest.fixture
def canaries(worker):
    """The worker counts one canary more each time it is asked."""
    worker.came, worker.lost = 0, 0

    async def metrics() -> bytes:
        worker.came += 1
        return (
            f'replicator_flow_state{LABELS},state="replicating"}} 1\n'
            f"replicator_canary_roundtrip_seconds_count{LABELS}}} {worker.came}\n"
            f"replicator_canary_lost_total{LABELS}}} {worker.lost}\n"
        ).encode()

    worker.metrics = metrics
    return worker


def watch(url, *, token=None):
    said = []
    health = watch_release(
        [url], token=token, timeout_seconds=10.0, clock=ManualClock(), on_waiting=said.append
    )
    return health, said


def test_it_waits_until_a_canary_of_every_link_came(canaries, reader_url):
    health, said = watch(reader_url)
    assert health.waiting_for == ()
    assert [(link.flow, link.came, link.lost) for link in health.links] == [("east->west", 1, 0)]
    assert said == [("east->west orders: no canary came through yet",)]


def test_a_worker_that_is_not_ready_in_time_is_named(canaries, reader_url):
    canaries.ready_verdict = dataclasses.replace(HealthVerdict(ok=False), reasons=("no brokers",))
    health, _ = watch(reader_url)
    assert any("not ready: no brokers" in line for line in health.waiting_for)


def test_where_workers_have_a_token_it_is_needed_and_used(canaries, clusterwide_url):
    refused, _ = watch(clusterwide_url)
    assert any("its metrics answer HTTP 401" in line for line in refused.waiting_for)
    health, _ = watch(clusterwide_url, token="correct-horse-battery")
    assert health.waiting_for == ()


def test_a_name_with_addresses_of_both_families_is_one_worker(canaries, reader_url):
    health, _ = watch(reader_url.replace("127.0.0.1", "localhost"))
    assert [worker.address for worker in health.workers] == [reader_url.removeprefix("http://")]


@pytest.mark.parametrize("url", ["worker:8080", "ftp://worker", "http://", "http://w:port"])
def test_what_is_no_address_of_a_worker_is_refused(url):
    with pytest.raises(InputError) as refused:
        watch(url)
    assert url in refused.value.message
