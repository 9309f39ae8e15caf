"""Coordinators that hang up or move: no socket stays open, and what they may have done is not taken for undone."""

import contextlib
import gc
import struct
import warnings

import pytest
from tiny_broker import API_VERSIONS, FIND_COORDINATOR, LoopbackBroker

from replicator.batches.copy.transactions import ProducerIdentity, Transactions
from replicator.errors import (
    FencedError,
    TransientBrokerError,
    UnknownOutcomeError,
    UnreachableError,
)
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


END_TXN = 26
NOT_COORDINATOR, INVALID_STATE, FENCED = 16, 48, 90


class Moves(LoopbackBroker):
    """Answers each EndTxn with the next of ``codes``; with ``goes`` it takes no connection after the first of them."""

    versions = ((API_VERSIONS, 0, 0), (FIND_COORDINATOR, 1, 1), (END_TXN, 1, 1))

    def __init__(self, *codes, goes):
        self.codes, self.goes, self.gone = iter(codes), goes, False
        super().__init__()

    def connected(self):
        return lambda _key, _version: not self.gone

    def answer(self, key):
        if key == API_VERSIONS:
            return super().answer(key)
        if key == END_TXN:
            self.gone = self.goes
            return struct.pack(">ih", 0, next(self.codes))
        return struct.pack(">ihhih9si", 0, 0, -1, 1, 9, b"127.0.0.1", self.address[1])


def end_at(broker, seconds=5.0):
    west = ClusterPlan("west", (f"127.0.0.1:{broker.address[1]}",))
    transactions = Transactions(west, client_id="c", transactional_id="id", timeout_seconds=60.0)
    transactions.identity = ProducerIdentity(7, 0)
    try:
        transactions.end(seconds)
    finally:
        transactions.close()
        broker.stop()


def test_a_coordinator_that_cannot_be_reached_again_after_it_moved_may_have_committed():
    with pytest.raises(UnknownOutcomeError, match=r"commit a transaction .*hangs up on us"):
        end_at(Moves(NOT_COORDINATOR, goes=True))


def test_a_coordinator_that_moved_and_then_knows_of_no_such_transaction_may_have_committed():
    with pytest.raises(UnknownOutcomeError, match=r"commit a transaction .*error 48"):
        end_at(Moves(NOT_COORDINATOR, INVALID_STATE, goes=False))


@pytest.mark.parametrize(
    ("code", "error"), [(INVALID_STATE, TransientBrokerError), (FENCED, FencedError)]
)
def test_a_refusal_by_one_that_did_not_move_is_known(code, error):
    with pytest.raises(error):
        end_at(Moves(code, goes=False))


def test_one_that_moved_and_is_found_again_commits():
    end_at(Moves(NOT_COORDINATOR, 0, goes=False))
