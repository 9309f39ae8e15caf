"""How the memory of a worker is divided, and what a lane's clients may hold of it."""

from dataclasses import replace

import pytest

from replicator.cli.operation.worker_options import checked_options
from replicator.dataplane.process.memory_limit import memory_limit
from replicator.dataplane.session.session_clients import holds_too_much
from replicator.dataplane.transport.spec import LaneSpec
from replicator.errors import InputError
from replicator.kafka.clients.client import open_consumer
from replicator.kafka.clients.settings import consumer_config
from replicator.policy.capacity.memory_shares import (
    MIB,
    MemoryShare,
    batches_memory,
    lane_memory,
    lane_share,
    records_bytes,
)
from replicator.topology.plan import ClusterPlan


def memory(share_mib, *, brokers=3, line=0.0, expansion=0):
    return lane_memory(
        MemoryShare(share_mib * MIB, expansion),
        brokers=brokers, line_seconds=line, partition_bytes=2 * MIB,
    )  # fmt: skip


@pytest.mark.parametrize("lanes", range(1, 65))
def test_all_lanes_together_stay_within_the_whole(lanes):
    assert lanes * lane_share(1000, lanes) <= 1000
    assert lane_share(1000, lanes) >= 1000 // (2 * lanes)


@pytest.mark.parametrize("share", [32, 64, 100, 512, 4096])
@pytest.mark.parametrize("brokers", [1, 2, 3, 6, 30])
@pytest.mark.parametrize("line", [0.0, 0.1])
def test_what_brokers_may_send_at_once_twice_fits_into_the_share(share, brokers, line):
    found = memory(share, brokers=brokers, line=line)
    held = 2 * (brokers * found.answer_bytes * found.expansion + found.queue_bytes)
    assert found.held_bytes == held + found.unsent_bytes
    assert found.kept == (found.held_bytes <= share * MIB)
    if share >= brokers * 32:
        assert found.kept


def test_a_share_that_is_too_small_is_reported():
    assert not memory(8, brokers=6).kept
    assert memory(8, brokers=6).answer_bytes == 32 * 1024


def test_long_lines_and_a_given_expansion_change_what_is_asked_for():
    near, far = memory(64), memory(64, line=0.1)
    assert (near.expansion, far.expansion) == (100, 10)
    assert 9 * near.answer_bytes < far.answer_bytes <= 11 * near.answer_bytes
    assert memory(64, expansion=20).answer_bytes == memory(64, line=0.1, expansion=20).answer_bytes


def test_without_a_bound_everything_is_as_it_was():
    found = memory(0)
    assert (found.answer_bytes, found.queue_bytes, found.unsent_bytes) == (
        50 * MIB, 48 * MIB, 48 * MIB,
    )  # fmt: skip
    assert found.kept
    whole = batches_memory(
        MemoryShare(), brokers=3, connections=2, fetch_bytes=8 * MIB, outstanding_bytes=24 * MIB
    )
    assert (whole.answer_bytes, whole.unsent_bytes, whole.held_bytes) == (8 * MIB, 24 * MIB, 0)


@pytest.mark.parametrize(("brokers", "connections"), [(1, 1), (3, 1), (3, 10), (6, 16)])
def test_whole_batches_fit_too(brokers, connections):
    share = MemoryShare(200 * MIB)
    found = batches_memory(
        share, brokers=brokers, connections=connections,
        fetch_bytes=8 * MIB, outstanding_bytes=24 * MIB,
    )  # fmt: skip
    assert found.kept
    assert found.held_bytes <= share.size_bytes
    assert found.held_bytes == brokers * connections * found.answer_bytes + found.unsent_bytes


def test_whole_batches_say_where_the_least_is_more_than_their_part():
    share = MemoryShare(1 * MIB)
    found = batches_memory(
        share, brokers=50, connections=4, fetch_bytes=8 * MIB, outstanding_bytes=24 * MIB
    )
    assert not found.kept
    assert found.held_bytes > share.size_bytes


def test_the_worker_itself_comes_off_its_limit_first():
    assert records_bytes(1024 * MIB, processes=2) < records_bytes(1024 * MIB, processes=1)
    assert records_bytes(1024 * MIB, processes=2) + 420 * MIB <= 1024 * MIB
    assert records_bytes(100 * MIB, processes=2) == 32 * MIB
    assert records_bytes(None, processes=8) == 1536 * MIB


def test_clients_are_reopened_only_where_they_may_hold_too_much():
    spec = LaneSpec(
        "shop", "link", ClusterPlan("east", ("e:1",)), ClusterPlan("west", ("w:1",)), 0, 1,
        settings=None, work=(),
    )  # fmt: skip
    whole, half = (replace(spec, memory=MemoryShare(size)) for size in (100, 50))
    assert holds_too_much(whole, half)
    assert holds_too_much(spec, half)
    assert not holds_too_much(half, whole)
    assert not holds_too_much(whole, whole)
    assert not holds_too_much(whole, spec)


def test_the_smallest_limit_of_the_groups_that_we_are_in_counts(tmp_path):
    own = tmp_path / "cgroup"
    assert memory_limit(tmp_path, own) is None
    (tmp_path / "memory.max").write_text("max\n")
    assert memory_limit(tmp_path, own) is None
    (tmp_path / "memory.max").write_text("1073741824\n")
    assert memory_limit(tmp_path, own) == 1 << 30
    group = tmp_path / "system.slice" / "worker.service"
    group.mkdir(parents=True)
    own.write_text("0::/system.slice/worker.service\n")
    (group / "memory.max").write_text("max\n")
    assert memory_limit(tmp_path, own) == 1 << 30
    (group.parent / "memory.max").write_text("536870912\n")
    assert memory_limit(tmp_path, own) == 1 << 29


def test_the_older_kind_of_groups_is_read_as_well(tmp_path):
    own = tmp_path / "cgroup"
    own.write_text("5:cpu,cpuacct:/a\n4:memory:/a\n1:name=systemd:/a\n")
    group = tmp_path / "memory" / "a"
    group.mkdir(parents=True)
    (group / "memory.limit_in_bytes").write_text("9223372036854771712\n")
    assert memory_limit(tmp_path, own) is None
    (group / "memory.limit_in_bytes").write_text("268435456\n")
    assert memory_limit(tmp_path, own) == 1 << 28


def test_a_size_that_is_none_is_refused_with_the_option(tmp_path):
    file = tmp_path / "topology.yaml"
    file.write_text("apiVersion: replicator/v1\n")
    with pytest.raises(InputError) as refused:
        checked_options(
            file=file, clusters=(), flows=(), worker_id=None, grace_seconds=1.0,
            metrics_detail=False, memory="lots",
        )  # fmt: skip
    assert refused.value.subject == "--memory"


@pytest.mark.parametrize("share", [1, 8, 64, 512, 65_536])
def test_the_client_library_accepts_every_result(share):
    found = memory(share)
    settings = consumer_config(
        ClusterPlan("east", ("localhost:1",)), client_id="test", fetch_bytes=found.answer_bytes,
        partition_fetch_bytes=min(2 * MIB, found.answer_bytes), queue_bytes=found.queue_bytes,
    )  # fmt: skip
    open_consumer(settings).close()
