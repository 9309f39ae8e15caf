"""A coordinator that hangs up while it is asked what it knows leaves no open socket behind."""

import contextlib
import gc
import struct
import warnings

from tiny_broker import API_VERSIONS, FIND_COORDINATOR, LoopbackBroker

from replicator.batches.copy.transactions import Transactions
from replicator.errors import UnreachableError
from replicator.topology.plan import ClusterPlan


class HangsUp(LoopbackBroker):
    """Says that it is the coordinator, and ends a connection at the second request for versions."""

    versions = ((API_VERSIONS, 0, 0), (FIND_COORDINATOR, 1, 1))

    def __init__(self):
        self.ended = 0
        super().__init__()

    def connected(self):
        asked = 0

        def serves(key, _version):
            nonlocal asked
            asked += key == API_VERSIONS
            self.ended += asked > 1
            return asked <= 1

        return serves

    def answer(self, key):
        if key == API_VERSIONS:
            return super().answer(key)
        return struct.pack(">ihhih9si", 0, 0, -1, 1, 9, b"127.0.0.1", self.address[1])


def test_a_coordinator_that_hangs_up_leaves_no_socket_open():
    broker = HangsUp()
    west = ClusterPlan("west", (f"127.0.0.1:{broker.address[1]}",))
    transactions = Transactions(west, client_id="c", transactional_id="id", timeout_seconds=60.0)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with contextlib.suppress(UnreachableError):
            transactions.take_over(5)
        transactions.close()
        gc.collect()
    broker.stop()
    assert broker.ended == 1
    assert [str(each.message) for each in told if each.category is ResourceWarning] == []
