"""What follows from the length of a line, and what the kernel tells of one."""

import contextlib
import os
import socket
from pathlib import Path

import pytest

from replicator.policy.capacity.crossing_codec import CrossingCodec
from replicator.policy.capacity.line_settings import FAR_CODEC, line_settings
from replicator.topology.plan import ClusterPlan
from replicator.wire.probes.library_connections import LOOK_SECONDS, LibraryConnections
from replicator.wire.probes.line import LineFacts, line_facts, round_trip_seconds, suit_to_line

MIB = 1024 * 1024


def settings(source=0.0, target=0.0, interval=0.2):
    return line_settings(
        source_seconds=source,
        target_seconds=target,
        fetch_bytes=8 * MIB,
        partition_bytes=2 * MIB,
        commit_interval_seconds=interval,
    )


@pytest.mark.parametrize("seconds", [0.0, 0.0002, 0.001, 0.005])
def test_nothing_changes_inside_one_site(seconds):
    near = settings(seconds, seconds)
    assert (near.connections, near.fetch_bytes, near.partition_bytes) == (1, 8 * MIB, 2 * MIB)
    assert near.commit_interval_seconds == 0.2
    assert near.joined_records == 20
    assert near.codec == "none"


def test_a_long_line_gets_connections_and_larger_shares_within_bounds():
    far = settings(source=0.1)
    assert far.connections == 16
    assert 2 * MIB <= far.partition_bytes <= 8 * MIB
    assert far.partition_bytes == far.fetch_bytes
    for seconds in (0.006, 0.03, 0.1, 0.25, 5.0):
        each = settings(source=seconds)
        assert each.connections * each.fetch_bytes <= 64 * MIB
    assert far.commit_interval_seconds == 0.2, "commits concern the target alone"
    assert far.codec == "none", "what is written crosses nothing long"
    assert settings(source=5.0).connections == 16
    assert settings(source=0.03).connections == 5


@pytest.mark.parametrize("source", [0.0, 0.1])
def test_what_is_written_far_away_is_compressed_unless_the_target_takes_none_of_it(source):
    codec = settings(source=source, target=0.1).codec
    crossing = CrossingCodec()
    assert crossing.of(codec) == FAR_CODEC
    crossing.refused()
    assert crossing.of(codec) == "none"


def test_commits_become_rarer_with_the_round_trip_to_the_target_and_never_more_often():
    assert settings(target=0.1).commit_interval_seconds == 4.0
    assert settings(target=0.1, interval=30.0).commit_interval_seconds == 30.0
    assert settings(target=5.0).commit_interval_seconds == 10.0
    assert settings(target=0.1).connections == 1


def test_larger_batches_are_joined_where_a_target_far_away_takes_five_in_a_round_trip():
    assert settings(target=0.1).joined_records == 2000
    assert settings(source=0.1).joined_records == 20


def test_loss_is_a_share_of_what_was_sent():
    assert LineFacts(0.1, 0, 0).loss == 0
    assert LineFacts(0.1, 200, 2).loss == 0.01


@pytest.fixture
def listener():
    with socket.create_server(("127.0.0.1", 0)) as made:
        yield made


@pytest.mark.skipif("sys.platform != 'linux'", reason="only Linux tells")
def test_the_kernel_describes_a_connection(listener):
    with socket.create_connection(listener.getsockname()) as connected:
        accepted, _ = listener.accept()
        with accepted:
            connected.sendall(b"x")
            accepted.recv(1)
        facts = line_facts(connected)
        assert 0 < facts.round_trip_seconds < 0.1
        assert facts.segments_sent >= 1
        before = connected.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
        suit_to_line(connected)
        assert connected.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16) == before


def test_the_round_trip_is_asked_for_once_and_unknown_means_near(listener):
    server = f"127.0.0.1:{listener.getsockname()[1]}"
    cluster = ClusterPlan("near", (server,))
    first = round_trip_seconds(cluster)
    assert first < 0.1
    listener.close()
    assert round_trip_seconds(cluster) == first
    assert round_trip_seconds(ClusterPlan("silent", (server, "127.0.0.1:1"))) == 0.0


@pytest.mark.skipif(
    "sys.platform != 'linux'", reason="only Linux drops what a full backlog cannot take"
)
def test_a_server_that_swallows_everything_leaves_time_for_the_next_one(listener):
    with contextlib.ExitStack() as open_ones:
        silent = open_ones.enter_context(socket.socket())
        silent.bind(("127.0.0.1", 0))
        silent.listen(0)
        for _ in range(4):  # more than it takes while nobody accepts
            waiting = open_ones.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(silent.getsockname())
        servers = tuple(f"127.0.0.1:{each.getsockname()[1]}" for each in (silent, listener))
        round_trip_seconds(ClusterPlan("half", servers))
        listener.settimeout(5)
        listener.accept()[0].close()


def descriptors():
    return {each.name for each in Path("/proc/self/fd").iterdir()}


def congestion_control(connected):
    return connected.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)


@pytest.mark.skipif("sys.platform != 'linux'", reason="only Linux tells")
def test_connections_that_others_hold_are_looked_at_and_near_ones_stay_as_they_are(listener):
    connections = LibraryConnections(far=True)
    before = descriptors()
    for turn in range(3):
        with socket.create_connection(listener.getsockname(), timeout=5) as connected:
            accepted, _ = listener.accept()
            usual = congestion_control(connected)
            connections.suit(turn * LOOK_SECONDS)
            assert congestion_control(connected) == usual
            assert not os.get_blocking(connected.fileno()), "as its owner made it"
            with accepted:
                accepted.sendall(b"x")
            assert connected.recv(1) == b"x"
    assert descriptors() == before, "what was looked at is let go"
