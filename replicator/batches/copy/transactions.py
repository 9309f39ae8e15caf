"""The target's transaction coordinator: who writes, what belongs to a transaction, and how it ends.

Rule: after a request to the coordinator without a clear answer this producer sends no EndTxn any more
(a late one could end a later transaction, KAFKA-17754). The caller takes over anew: InitProducerId bumps
the epoch, and the checkpoints say what became of the last transaction.
"""

import time
from dataclasses import dataclass
from typing import Any

from replicator.errors import (
    FencedError,
    ReplicatorError,
    TransientBrokerError,
    UnknownOutcomeError,
)
from replicator.topology.plan import ClusterPlan
from replicator.wire.connection.connection import BrokerConnection
from replicator.wire.connection.errors import code_error
from replicator.wire.connection.leader import any_broker
from replicator.wire.connection.protocol import (
    AddPartitionsToTxnRequest,
    ApiMessage,
    ApiVersionsRequest,
    EndTxnRequest,
    FindCoordinatorRequest,
    InitProducerIdRequest,
)

_TRANSACTION = 1
_FEATURE = "transaction.version"
_FINDS, _INIT, _ADD, _END_OLD, _END_NEW, _VERSIONS = 3, 4, 3, 3, 5, 3
FENCED = frozenset({47, 49, 90})
"""Another producer has the transactional id: a newer epoch, or a newer id since the epochs ran out (49). The
coordinator answers the same where it ended a transaction that was open for too long: whose lane it is then,
the workers' group says."""

REPLACED = "another owner took over, or the transaction was open for too long"
_CONCURRENT = 51
_AGAIN = frozenset({14, 15, 16, _CONCURRENT})
_MOVED = frozenset({15, 16})
_PAUSE_SECONDS = 0.01
_ANSWER_SECONDS = 2.0
"""So much of a call's time is left for its last answer: one that does not come in time leaves the outcome unknown."""


@dataclass(frozen=True, slots=True)
class ProducerIdentity:
    """Producer id and epoch."""

    producer_id: int
    epoch: int


class Transactions:
    """One producer, with or without a transactional id; calls block, for one thread.

    Attributes:
        identity: as which producer batches are written.
        second: whether the cluster speaks transaction version 2 (KIP-890): every transaction has an epoch
            of its own, and partitions join by being written to.
    """

    def __init__(
        self,
        cluster: ClusterPlan,
        *,
        client_id: str,
        transactional_id: str | None,
        timeout_seconds: float,
    ) -> None:
        self.identity = ProducerIdentity(-1, -1)
        self.second = False
        self._cluster = cluster
        self._subject = f"cluster:{cluster.alias}"
        self._client_id = client_id
        self._transactional_id = transactional_id
        self._timeout_ms = round(timeout_seconds * 1000)
        self._connection: BrokerConnection | None = None
        self._ambiguous = False

    def connect(self, seconds: float) -> None:
        """Connects to the coordinator, so that taking over is one request.

        Raises:
            ReplicatorError: it cannot be found or reached, or refuses us.
        """
        self._coordinator(time.monotonic() + seconds)

    def take_over(self, seconds: float) -> None:
        """Becomes the only writer of the id: fences the last owner and aborts what it left open.

        Raises:
            ReplicatorError: not now; it may be asked again.
        """
        deadline = time.monotonic() + seconds
        while True:
            connection = self._coordinator(deadline)
            request = InitProducerIdRequest(
                transactional_id=self._transactional_id,
                transaction_timeout_ms=self._timeout_ms,
                producer_id=-1,
                producer_epoch=-1,
            )
            try:
                answer = connection.call(request, newest=_INIT, deadline=deadline)
            except ReplicatorError:
                self.close()
                raise
            if not answer.error_code:
                self.identity = ProducerIdentity(answer.producer_id, answer.producer_epoch)
                return
            self._again(answer.error_code, "take over the lane's transactional id", deadline)

    def join(
        self, partitions: list[tuple[str, int]], seconds: float, *, patient: bool = False
    ) -> bool:
        """Adds partitions to the open transaction; with ``patient`` False where the last one's markers are missing.

        Otherwise these are waited for.

        Raises:
            UnknownOutcomeError: no clear answer.
            ReplicatorError: refused.
        """
        by_topic: dict[str, list[int]] = {}
        for topic, partition in partitions:
            by_topic.setdefault(topic, []).append(partition)
        named = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
        deadline = time.monotonic() + seconds
        while True:
            request = AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=self._transactional_id,
                v3_and_below_producer_id=self.identity.producer_id,
                v3_and_below_producer_epoch=self.identity.epoch,
                v3_and_below_topics=[
                    named(name=topic, partitions=numbers) for topic, numbers in by_topic.items()
                ],
            )
            answer = self._ask(request, _ADD, "add partitions to a transaction", deadline)
            codes = {
                part.partition_error_code
                for topic in answer.results_by_topic_v3_and_below
                for part in topic.results_by_partition
            }
            wrong = sorted(codes - {0, *_AGAIN}) or sorted(codes & _AGAIN)
            if not wrong:
                return True
            if patient and wrong[0] == _CONCURRENT:
                return False
            self._again(wrong[0], "add partitions to a transaction", deadline)

    def abort_in(self, partitions: list[tuple[str, int]], seconds: float) -> None:
        """Ends as aborted what this id has open there though its coordinator knows of nothing.

        So it is where an unclean election kept the records of a transaction and lost its marker. To be
        called between transactions.

        Raises:
            UnknownOutcomeError: no clear answer.
            ReplicatorError: refused.
        """
        self.join(partitions, seconds)
        self.end(seconds, commit=False)

    def end(self, seconds: float, *, commit: bool = True) -> None:
        """Ends the open transaction; returns when the coordinator has said yes.

        Raises:
            UnknownOutcomeError: no clear answer.
            ReplicatorError: refused; nothing is committed.
        """
        deadline = time.monotonic() + seconds
        doing = f"{'commit' if commit else 'abort'} a transaction"
        newest = _END_NEW if self.second else _END_OLD
        moved = False
        while True:
            request = EndTxnRequest(
                transactional_id=self._transactional_id,
                producer_id=self.identity.producer_id,
                producer_epoch=self.identity.epoch,
                committed=commit,
            )
            answer = self._ask(request, newest, doing, deadline)
            if not answer.error_code:
                if self.second:
                    self.identity = ProducerIdentity(answer.producer_id, answer.producer_epoch)
                return
            # A coordinator that loses its log while it writes the end there says so, and the end may stand.
            moved = moved or answer.error_code in _MOVED
            try:
                self._again(answer.error_code, doing, deadline)
            except TransientBrokerError as error:
                if moved:
                    raise self._unknown(doing, error) from error
                raise

    def close(self) -> None:
        """Hangs up; the id stays ours until it is taken."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _ask(self, request: ApiMessage, newest: int, doing: str, deadline: float) -> Any:  # noqa: ANN401
        if self._ambiguous:
            raise self._unknown(doing)
        try:
            # Connected anew where the coordinator has moved: what it was asked before may have taken effect.
            return self._coordinator(deadline).call(request, newest=newest, deadline=deadline)
        except ReplicatorError as error:
            if not error.retriable:
                raise
            self._ambiguous = True
            self.close()
            raise self._unknown(doing, error) from error

    def _unknown(self, doing: str, error: ReplicatorError | None = None) -> UnknownOutcomeError:
        why = "" if error is None else f" ({error.message})"
        return UnknownOutcomeError(
            f"no answer of the target whether this took effect: {doing}{why}",
            subject=self._subject,
            remedy="The lane takes over again and continues from its checkpoints.",
        )

    def _again(self, code: int, doing: str, deadline: float) -> None:
        """Returns where the same may be asked again: the coordinator has said that nothing was done."""
        if code in FENCED:
            raise FencedError(f"cannot {doing}: {REPLACED}", subject=self._subject)
        if code not in _AGAIN or time.monotonic() + _PAUSE_SECONDS + _ANSWER_SECONDS >= deadline:
            mapped = code_error(code, subject=self._subject, doing=doing)
            if mapped.retriable:
                raise mapped
            raise TransientBrokerError(mapped.message, subject=self._subject, remedy=mapped.remedy)
        if code in _MOVED:
            self.close()
        time.sleep(_PAUSE_SECONDS)  # a coordinator that moves answers at once, with a refusal

    def _coordinator(self, deadline: float) -> BrokerConnection:
        if self._connection is None:
            self._connection = self._open(deadline)
        return self._connection

    def _open(self, deadline: float) -> BrokerConnection:
        asked = any_broker(self._cluster, client_id=self._client_id, deadline=deadline)
        if self._transactional_id is None:
            return asked
        with asked:
            while True:
                request = FindCoordinatorRequest(key=self._transactional_id, key_type=_TRANSACTION)
                answer = asked.call(request, newest=_FINDS, deadline=deadline)
                if not answer.error_code:
                    break
                self._again(answer.error_code, "find the transaction coordinator", deadline)
        connection = BrokerConnection(
            self._cluster, (answer.host, answer.port), client_id=self._client_id, deadline=deadline
        )
        try:
            self.second = _second(connection, deadline)
        except BaseException:
            connection.close()
            raise
        return connection


def _second(connection: BrokerConnection, deadline: float) -> bool:
    request = ApiVersionsRequest(client_software_name="replicator", client_software_version="1")
    answer = connection.call(request, newest=_VERSIONS, deadline=deadline)
    levels = {
        each.name: each.max_version_level
        for each in getattr(answer, "finalized_features", None) or ()
    }
    knows = connection.versions.get(EndTxnRequest.API_KEY, (0, -1))[1] >= _END_NEW
    return bool(levels.get(_FEATURE, 0) >= 2 and knows)
