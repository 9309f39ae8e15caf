"""Ports of test clusters: whose they are before a server listens, and while it is down."""

import subprocess
import sys

from replicator.testing.kit import ports

CHILD = """
from replicator.testing.kit.ports import free_ports
print(*free_ports(3), flush=True)
input()
"""


def test_a_port_that_another_process_picked_is_its_own_until_it_ends():
    with subprocess.Popen(
        [sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        theirs = [int(port) for port in child.stdout.readline().split()]
        assert len(set(theirs)) == 3
        assert [ports._RESERVED.take(port) for port in theirs] == [False] * 3
        child.communicate("\n", timeout=30)
    assert [ports._RESERVED.take(port) for port in theirs] == [True] * 3


def test_a_port_is_picked_once():
    first = ports.free_ports(5)
    assert not set(first) & set(ports.free_ports(5))
