"""The proxy's faults are what their names say, for raw sockets and for Kafka clients."""

import socket
import threading
import time

import pytest
from confluent_kafka import KafkaException, Producer

from replicator.testing import FaultProxy, wait_until
from replicator.testing.kit.ports import free_ports

SILENCE_SECONDS = 1.0


@pytest.fixture
def echo():
    """A server that sends back what it gets; yields its port and the list of its connections."""
    server = socket.create_server(("127.0.0.1", 0))
    connections = []

    def serve(connection):
        with connection:
            try:
                while data := connection.recv(65_536):
                    connection.sendall(data)
            except OSError:
                pass

    def accept():
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            connections.append(connection)
            threading.Thread(target=serve, args=(connection,), daemon=True).start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    yield server.getsockname()[1], connections
    server.shutdown(socket.SHUT_RDWR)
    server.close()
    thread.join(5)
    for connection in connections:
        connection.close()


@pytest.fixture
def proxy(echo):
    (port,) = free_ports(1)
    proxy = FaultProxy(port=port, target_port=echo[0])
    proxy.start()
    yield proxy
    proxy.stop()


def connect(proxy):
    connection = socket.create_connection(("127.0.0.1", proxy.port), timeout=5)
    connection.settimeout(5)
    return connection


def ask(connection, data=b"hello"):
    connection.sendall(data)
    got = b""
    while len(got) < len(data):
        part = connection.recv(65_536)
        if not part:
            break
        got += part
    return got


def is_silent(connection):
    connection.settimeout(SILENCE_SECONDS)
    try:
        return connection.recv(1) is None
    except TimeoutError:
        return True
    finally:
        connection.settimeout(5)


def test_without_faults_it_passes_everything_on(proxy):
    with connect(proxy) as connection:
        big = bytes(range(256)) * 20_000
        thread = threading.Thread(target=connection.sendall, args=(big,))
        thread.start()
        got = b""
        while len(got) < len(big):
            got += connection.recv(1 << 20)
        thread.join()
        assert got == big


def test_the_end_of_a_stream_is_passed_on(proxy):
    with connect(proxy) as connection:
        assert ask(connection) == b"hello"
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(10) == b""
    wait_until(lambda: proxy.connection_count == 0, timeout_seconds=5, describe="no connection")


def test_cut_resets_what_is_open_and_refuses_what_is_new(proxy):
    with connect(proxy) as connection:
        assert ask(connection) == b"hello"
        proxy.cut()
        with pytest.raises(ConnectionResetError):
            connection.recv(1)
    with pytest.raises(ConnectionRefusedError):
        connect(proxy)
    proxy.heal()
    with connect(proxy) as connection:
        assert ask(connection) == b"hello"


def test_black_hole_swallows_for_old_and_new_connections_until_healed(proxy, echo):
    with connect(proxy) as old:
        assert ask(old) == b"hello"
        proxy.black_hole()
        with connect(proxy) as new:
            for connection in (old, new):
                connection.sendall(b"lost")
                assert is_silent(connection)
            proxy.heal()
            for connection in (old, new):  # what lost bytes can not go on
                with pytest.raises(ConnectionResetError):
                    connection.recv(1)
    with connect(proxy) as fresh:
        assert ask(fresh) == b"hello"


def test_black_hole_hides_the_end_of_a_stream_from_the_other_side(proxy, echo):
    connection = connect(proxy)
    assert ask(connection) == b"hello"
    proxy.black_hole()
    connection.close()
    served = echo[1][0]
    time.sleep(SILENCE_SECONDS)  # the absence of an event has no condition to wait for
    assert served.fileno() >= 0
    proxy.heal()
    wait_until(lambda: served.fileno() < 0, timeout_seconds=5, describe="the server to be told")


def test_black_hole_in_one_direction_loses_only_answers(proxy, echo):
    with connect(proxy) as connection:
        assert ask(connection) == b"hello"
        proxy.black_hole("to-client")
        connection.sendall(b"heard")
        assert is_silent(connection)
        proxy.heal()
        with pytest.raises(ConnectionResetError):
            connection.recv(1)


def test_latency_delays_both_ways_and_keeps_order(proxy):
    with connect(proxy) as connection:
        proxy.latency(0.1, jitter_seconds=0.05)
        begun = time.monotonic()
        assert ask(connection, b"0123456789" * 1_000) == b"0123456789" * 1_000
        assert time.monotonic() - begun >= 0.2
        proxy.heal()


def test_latency_in_one_direction_delays_once(proxy):
    with connect(proxy) as connection:
        proxy.latency(0.2, direction="to-broker")
        begun = time.monotonic()
        assert ask(connection) == b"hello"
        assert time.monotonic() - begun >= 0.2


def test_bandwidth_limits_a_connection(proxy):
    with connect(proxy) as connection:
        proxy.bandwidth(1_000_000, direction="to-broker")
        begun = time.monotonic()
        assert len(ask(connection, b"x" * 500_000)) == 500_000
        assert time.monotonic() - begun >= 0.4


def test_a_server_that_is_down_is_a_reset(echo):
    unused, port = free_ports(2)
    proxy = FaultProxy(port=port, target_port=unused)
    proxy.start()
    with pytest.raises(ConnectionResetError), connect(proxy) as connection:
        connection.recv(1)
    proxy.stop()


def test_a_kafka_client_feels_each_fault_and_recovers(clusters, unique):
    (cluster,) = clusters("faulty", proxied=True)
    cluster.create_topic(unique)
    assert cluster.bootstrap_servers == [f"127.0.0.1:{cluster.proxies[0].port}"]

    def reachable(timeout=1.0):
        try:
            Producer({**cluster.client_settings(), "log_level": 0}).list_topics(unique, timeout)
        except KafkaException:
            return False
        return True

    assert reachable(10)
    for fault in (cluster.proxy.cut, cluster.proxy.black_hole):
        fault()
        assert not reachable()
        assert unique in cluster.admin().list_topics(timeout=10).topics  # the way behind it
        cluster.proxy.heal()
        assert reachable(10)
