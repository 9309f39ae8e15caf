"""A lane that goes over to whole batches copies record by record until readers have seen its id registered."""

from dataclasses import replace

from replicator.clock import Clock
from replicator.dataplane.session.clients_protocol import SessionClients, UnseenProducer
from replicator.dataplane.transport.spec import LaneSpec
from replicator.policy.copies.engines import NEW_ID, REFUSED_RECORD, RecordsReason


class UnseenId:
    """Of one lane, from session to session; for its thread.

    Both engines write under the lane's transactional id, so under one producer id. Who met it in records with headers took
    it for a stranger's, and whole batches have no headers: the registry of producers has it for a while before the first
    of them is sent. Records with headers are told from others with and without a registration, so the lane goes on with them.
    """

    def __init__(self, clock: Clock, *, goes_on: bool) -> None:
        """A lane that never copied record by record before must not begin to: it waits (``goes_on`` is False)."""
        self._clock = clock
        self._goes_on = goes_on
        self._id: int | None = None
        self._until = 0.0

    @property
    def waits(self) -> bool:
        """Whether records are to be copied one by one for now."""
        return self._clock.monotonic() < self._until

    def taken_over(self, unseen: UnseenProducer | None) -> bool:
        """Whether the clients of whole batches have to be left for others, that copy record by record.

        ``unseen`` is theirs. What was registered once need not be waited for again.
        """
        if unseen is None:
            return False
        if not self._goes_on:
            self._clock.sleep(max(0.0, unseen.seen_at - self._clock.monotonic()))
            return False
        if unseen.producer_id != self._id:
            self._id, self._until = unseen.producer_id, unseen.seen_at
        return self.waits

    def is_over(self, orders: LaneSpec, copied_by: LaneSpec) -> bool:
        """Whether clients that copied record by record meanwhile have to be left for those of whole batches."""
        return copied_by.settings.engine != orders.settings.engine and not self.waits

    def spec_now(self, spec: LaneSpec) -> LaneSpec:
        """The lane's orders, as they can be carried out now."""
        if spec.settings.engine == "records" or not self.waits:
            return spec
        return replace(spec, settings=replace(spec.settings, engine="records"))


def records_reason(orders: LaneSpec, clients: SessionClients) -> RecordsReason:
    """Why these clients copy record by record, where whole batches are ordered."""
    if orders.settings.engine == "records":
        return ""
    if clients.record_by_record:
        return REFUSED_RECORD
    return NEW_ID if clients.spec.settings.engine == "records" else ""
