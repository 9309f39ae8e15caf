"""What a committer stores and when: never more than the target has acknowledged."""

from collections import deque

import pytest

from replicator.dataplane.progress.commit import (
    AcknowledgedCommitter,
    CheckpointWriter,
    TransactionalCommitter,
)
from replicator.dataplane.progress.first_writes import FirstWrites
from replicator.dataplane.progress.partition_state import PartitionState
from replicator.dataplane.transport.spec import PartitionWork
from replicator.errors import UnknownOutcomeError
from replicator.kafka.clients import codes
from replicator.kafka.clients.client import KafkaError, KafkaException
from replicator.kafka.logs.coordinator_watch import CoordinatorWatch
from replicator.testing import ManualClock


class ScriptedProducer:
    """Plays a producer's part by a script and keeps what happened, in order."""

    def __init__(self, *, unsent: list[int] | None = None, commits: list[object] | None = None):
        self.happened: list[str] = []
        self._unsent = deque(unsent or [])
        self._commits = deque(commits or [])

    def begin_transaction(self) -> None:
        self.happened.append("begin")

    def produce(self, topic, value, key, partition, callback) -> None:
        self.happened.append(f"checkpoint in {partition}")

    def flush(self, timeout: float) -> int:
        self.happened.append("flush")
        return self._unsent.popleft() if self._unsent else 0

    def poll(self, timeout: float) -> int:
        return 0

    def __len__(self) -> int:
        return self._unsent.popleft() if self._unsent else 0

    def commit_transaction(self, timeout: float) -> None:
        self.happened.append("commit")
        outcome = self._commits.popleft() if self._commits else None
        if isinstance(outcome, Exception):
            raise outcome

    def abort_transaction(self, timeout: float) -> None:
        self.happened.append("abort")


def state() -> PartitionState:
    made = PartitionState(
        PartitionWork("orders", 0, "orders", "A"), source_alias="east", provenance="full"
    )
    made.position, made.committed = 10, 5
    return made


def writer(producer: ScriptedProducer, *, transactional: bool) -> CheckpointWriter:
    watched = FirstWrites(
        producer,
        clock=ManualClock(),
        transactional=transactional,
        failed=lambda: False,
        give_up=lambda: False,
    )
    return CheckpointWriter(
        producer=producer, first_writes=watched, topic="c", lane=3, clock=ManualClock()
    )


def transactional(producer: ScriptedProducer, *, give_up: bool = False) -> TransactionalCommitter:
    return TransactionalCommitter(
        producer=producer,
        writer=writer(producer, transactional=True),
        coordinator=CoordinatorWatch(),
        clock=ManualClock(),
        give_up=lambda: give_up,
    )


def acknowledged(producer: ScriptedProducer, **answers: bool) -> AcknowledgedCommitter:
    return AcknowledgedCommitter(
        producer=producer,
        writer=writer(producer, transactional=False),
        clock=ManualClock(),
        give_up=lambda: answers.get("give_up", False),
        failed=lambda: answers.get("failed", False),
    )


def late() -> KafkaException:
    return KafkaException(KafkaError(codes.TIMED_OUT, "late", False, True, False))


def test_the_checkpoint_is_part_of_the_transaction_it_accounts_for():
    producer, one = ScriptedProducer(), state()
    committer = transactional(producer)
    committer.begin()
    committer.begin()
    committer.commit([one])

    assert producer.happened == ["begin", "checkpoint in 3", "flush", "commit"]
    assert (one.committed, committer.opened_at) == (10, None)


def test_a_commit_that_is_late_is_asked_for_again_until_its_outcome_is_known():
    producer, one = ScriptedProducer(commits=[late(), late()]), state()
    transactional(producer).commit([one])

    assert producer.happened.count("commit") == 3
    assert one.committed == 10


def test_a_lane_that_must_stop_calls_the_outcome_unknown_and_believes_nothing():
    one = state()
    with pytest.raises(UnknownOutcomeError):
        transactional(ScriptedProducer(commits=[late()]), give_up=True).commit([one])
    assert one.committed == 5


def test_a_refused_commit_is_raised_and_nothing_counts_as_stored():
    refused = KafkaException(KafkaError(KafkaError.INVALID_TXN_STATE))
    one = state()
    with pytest.raises(KafkaException):
        transactional(ScriptedProducer(commits=[refused])).commit([one])
    assert one.committed == 5


def test_only_an_open_transaction_is_aborted():
    producer = ScriptedProducer()
    committer = transactional(producer)
    committer.abort()
    committer.begin()
    committer.abort()

    assert producer.happened == ["begin", "abort"]


def test_without_transactions_the_checkpoint_follows_the_acknowledgements():
    producer, one = ScriptedProducer(unsent=[4, 2, 0]), state()
    acknowledged(producer).commit([one])

    waits = ["flush", "flush", "flush"]
    assert producer.happened == [*waits, "checkpoint in 3", "flush", "flush"]
    assert one.committed == 10


@pytest.mark.parametrize("answer", ["failed", "give_up"])
def test_without_an_acknowledgement_no_checkpoint_is_written(answer):
    producer, one = ScriptedProducer(unsent=[4, 4]), state()
    with pytest.raises(UnknownOutcomeError):
        acknowledged(producer, **{answer: True}).commit([one])

    assert "checkpoint in 3" not in producer.happened
    assert one.committed == 5


def test_checkpoints_are_written_when_nothing_is_on_its_way_and_count_when_that_is_so_again():
    producer, one = ScriptedProducer(unsent=[3, 0]), state()
    committer = acknowledged(producer)
    assert not committer.acknowledged()
    assert committer.acknowledged()
    committer.write([one])
    producer._unsent.extend([0, 2, 0])  # the first checkpoint of a producer is waited for, once
    one.position = 20  # the lane copies on meanwhile
    assert not committer.settled() or one.committed == 10
    assert committer.settled()
    assert one.committed == 10, "what was copied behind the checkpoint is not stored"


def test_a_failure_keeps_a_written_checkpoint_from_counting_as_stored():
    one, failed = state(), []
    committer = AcknowledgedCommitter(
        producer=ScriptedProducer(),
        writer=writer(ScriptedProducer(), transactional=False),
        clock=ManualClock(),
        give_up=lambda: False,
        failed=lambda: bool(failed),
    )
    committer.write([one])
    failed.append(True)
    with pytest.raises(UnknownOutcomeError):
        committer.settled()
    with pytest.raises(UnknownOutcomeError):
        committer.settle()
    assert one.committed == 5
